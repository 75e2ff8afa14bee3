/// Stochastic gradient descent.
#pragma once

#include <vector>

#include <rill/optim/optimizer.h>

#pragma GCC visibility push(default)

namespace rill::optim {

/// Options of SGD, with PyTorch's names.
struct SGDOptions {
  double lr = 1e-3;         ///< learning rate
  double momentum = 0;      ///< of the velocity
  double dampening = 0;     ///< of the gradient in the velocity
  double weight_decay = 0;  ///< L2 penalty
  bool nesterov = false;    ///< look ahead by one momentum
};

/// Gradient descent with momentum. With g = gradient + weight_decay · p:
///   buffer = momentum · buffer + (1 - dampening) · g, at the first update buffer = g
///   p -= lr · buffer, with nesterov lr · (g + momentum · buffer), without momentum lr · g
/// State: "momentum_buffer", with momentum. Throws when an option is negative or not finite, and on nesterov
/// without momentum or with dampening. (Sutskever et al. 2013, in PyTorch's form.)
class SGD final : public Optimizer {
 public:
  using Options = SGDOptions;             ///< of all parameters, or of a group
  using Group = ParameterGroup<Options>;  ///< parameters with their options

  // --- one parameter group, or several; throws "Name: …" for an option out of range
  explicit SGD(Parameters params, Options options = {});
  explicit SGD(std::vector<Group> groups);

 private:
  Update update(const Parameter& p, double scale) const override;

  std::vector<Options> options_;
};

}  // namespace rill::optim

#pragma GCC visibility pop
