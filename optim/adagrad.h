/// Adagrad.
#pragma once

#include <vector>

#include <rill/optim/optimizer.h>

#pragma GCC visibility push(default)

namespace rill::optim {

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
};

/// Gradients divided by the root of all their squares. With g = gradient + weight_decay · p, at update t of
/// the parameter:
///   sum += g²;  p -= lr / (1 + (t - 1) · lr_decay) · g / (√sum + eps)
/// State: "sum". Throws unless all options are finite and at least 0. (Duchi, Hazan and Singer 2011, in
/// PyTorch's form.)
class Adagrad final : public Optimizer {
 public:
  using Options = AdagradOptions;
  using Group = ParameterGroup<Options>;

  explicit Adagrad(Parameters params, Options options = {});
  explicit Adagrad(std::vector<Group> groups);

 private:
  void update(double scale) override;

  std::vector<Options> options_;
};

}  // namespace rill::optim

#pragma GCC visibility pop
