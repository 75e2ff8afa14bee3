/// Adam and AdamW.
#pragma once

#include <array>
#include <vector>

#include <rill/optim/optimizer.h>

#pragma GCC visibility push(default)

namespace rill::optim {

struct AdamOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
};

/// Adaptive moments. With g = gradient + weight_decay · p, at update t of the parameter:
///   m = β1 m + (1 - β1) g;  v = β2 v + (1 - β2) g²;  p -= lr · m / (1 - β1ᵗ) / (√v / √(1 - β2ᵗ) + eps)
/// With amsgrad the greatest v so far stands for v in the last formula. State: "exp_avg", "exp_avg_sq", with
/// amsgrad "max_exp_avg_sq". Throws unless 0 <= beta < 1 and eps and weight_decay are finite and at least 0.
/// (Kingma and Ba 2015; Reddi, Kale and Kumar 2018; in PyTorch's form.)
class Adam : public Optimizer {
 public:
  using Options = AdamOptions;
  using Group = ParameterGroup<Options>;

  explicit Adam(Parameters params, Options options = {});
  explicit Adam(std::vector<Group> groups);

 protected:
  Adam(std::string name, const std::vector<Group>& groups, bool decoupled);

 private:
  void update(double scale) override;

  std::vector<Options> options_;
  bool decoupled_;
};

struct AdamWOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
};

/// Adam whose weight decay is no part of the gradient: p = (1 - lr · weight_decay) · p comes before the
/// update with g = gradient. (Loshchilov and Hutter 2019, in PyTorch's form.)
class AdamW final : public Adam {
 public:
  using Options = AdamWOptions;
  using Group = ParameterGroup<Options>;

  explicit AdamW(Parameters params, Options options = {});
  explicit AdamW(std::vector<Group> groups);
};

}  // namespace rill::optim

#pragma GCC visibility pop
