/// Adam and AdamW.
#pragma once

#include <array>
#include <vector>

#include <rill/optim/optimizer.h>

#pragma GCC visibility push(default)

namespace rill::optim {

/// Options of Adam, with PyTorch's names.
struct AdamOptions {
  double lr = 1e-3;                            ///< learning rate
  std::array<double, 2> betas = {0.9, 0.999};  ///< decay of the moments
  double eps = 1e-8;                           ///< added to the divisor
  double weight_decay = 0;                     ///< L2 penalty
  bool amsgrad = false;                        ///< divide by the largest second moment so far
};

/// Adaptive moments. With g = gradient + weight_decay · p, at update t of the parameter:
///   m = β1 m + (1 - β1) g;  v = β2 v + (1 - β2) g²;  p -= lr · m / (1 - β1ᵗ) / (√v / √(1 - β2ᵗ) + eps)
/// With amsgrad, the largest v so far replaces v in the last formula. State: "exp_avg", "exp_avg_sq", with
/// amsgrad "max_exp_avg_sq". Throws unless 0 <= beta < 1 and eps and weight_decay are finite and at least 0.
/// (Kingma and Ba 2015; Reddi, Kale and Kumar 2018; in PyTorch's form.)
class Adam : public Optimizer {
 public:
  using Options = AdamOptions;            ///< of all parameters, or of a group
  using Group = ParameterGroup<Options>;  ///< parameters with their options

  // --- one parameter group, or several; throws "Name: …" for an option out of range
  explicit Adam(Parameters params, Options options = {});
  explicit Adam(std::vector<Group> groups);

 protected:
  /// `decoupled`: weight decay is not part of the gradient.
  Adam(std::string name, const std::vector<Group>& groups, bool decoupled);

 private:
  Update update(const Parameter& p, double scale) const override;

  std::vector<Options> options_;
  bool decoupled_;
};

/// Options of AdamW, with PyTorch's names.
struct AdamWOptions {
  double lr = 1e-3;                            ///< learning rate
  std::array<double, 2> betas = {0.9, 0.999};  ///< decay of the moments
  double eps = 1e-8;                           ///< added to the divisor
  double weight_decay = 1e-2;                  ///< of the parameter itself
  bool amsgrad = false;                        ///< divide by the largest second moment so far
};

/// Adam with decoupled weight decay: p = (1 - lr · weight_decay) · p, then the update with g = gradient.
/// (Loshchilov and Hutter 2019, in PyTorch's form.)
class AdamW final : public Adam {
 public:
  using Options = AdamWOptions;           ///< of all parameters, or of a group
  using Group = ParameterGroup<Options>;  ///< parameters with their options

  // --- one parameter group, or several; throws "Name: …" for an option out of range
  explicit AdamW(Parameters params, Options options = {});
  explicit AdamW(std::vector<Group> groups);
};

}  // namespace rill::optim

#pragma GCC visibility pop
