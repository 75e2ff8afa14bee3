/// RMSprop.
#pragma once

#include <vector>

#include <rill/optim/optimizer.h>

#pragma GCC visibility push(default)

namespace rill::optim {

/// Options of RMSprop, with PyTorch's names.
struct RMSpropOptions {
  double lr = 1e-2;         ///< learning rate
  double alpha = 0.99;      ///< decay of the mean square
  double eps = 1e-8;        ///< added to the divisor
  double weight_decay = 0;  ///< L2 penalty
  double momentum = 0;      ///< of the velocity
  bool centered = false;    ///< divide by the standard deviation
};

/// Gradients divided by the root of a running mean of their squares. With g = gradient + weight_decay · p:
///   s = alpha s + (1 - alpha) g²;  u = g / (√s + eps);  buffer = momentum · buffer + u;  p -= lr · buffer
/// If centered: mean = alpha mean + (1 - alpha) g, and max(s - mean², 0) replaces s under the root. State:
/// "square_avg", when centered "grad_avg", with momentum "momentum_buffer". Throws unless 0 <= alpha <= 1 and
/// the other options are finite and at least 0. (Hinton 2012; Graves 2013; in PyTorch's form.)
class RMSprop final : public Optimizer {
 public:
  using Options = RMSpropOptions;         ///< of all parameters, or of a group
  using Group = ParameterGroup<Options>;  ///< parameters with their options

  // --- one parameter group, or several; throws "Name: …" for an option out of range
  explicit RMSprop(Parameters params, Options options = {});
  explicit RMSprop(std::vector<Group> groups);

 private:
  Update update(const Parameter& p, double scale) const override;

  std::vector<Options> options_;
};

}  // namespace rill::optim

#pragma GCC visibility pop
