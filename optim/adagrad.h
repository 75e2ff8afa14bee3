/// Adagrad.
#pragma once

#include <vector>

#include <rill/optim/optimizer.h>

#pragma GCC visibility push(default)

namespace rill::optim {

/// Options of Adagrad, with PyTorch's names.
struct AdagradOptions {
  double lr = 1e-2;                      ///< learning rate
  double lr_decay = 0;                   ///< of the learning rate, per step
  double weight_decay = 0;               ///< L2 penalty
  double initial_accumulator_value = 0;  ///< Σ g² at the start
  double eps = 1e-10;                    ///< added to the divisor
};

/// Gradients divided by the root of the sum of their squares. With g = gradient + weight_decay · p, at update
/// t of the parameter:
///   sum += g²;  p -= lr / (1 + (t - 1) · lr_decay) · g / (√sum + eps)
/// State: "sum". Throws unless all options are finite and at least 0. (Duchi, Hazan and Singer 2011, in
/// PyTorch's form.)
class Adagrad final : public Optimizer {
 public:
  using Options = AdagradOptions;         ///< of all parameters, or of a group
  using Group = ParameterGroup<Options>;  ///< parameters with their options

  // --- one parameter group, or several; throws "Name: …" for an option out of range
  explicit Adagrad(Parameters params, Options options = {});
  explicit Adagrad(std::vector<Group> groups);

 private:
  Update update(const Parameter& p, double scale) const override;

  std::vector<Options> options_;
};

}  // namespace rill::optim

#pragma GCC visibility pop
