/// Adadelta.
#pragma once

#include <vector>

#include <rill/optim/optimizer.h>

#pragma GCC visibility push(default)

namespace rill::optim {

/// Options of Adadelta, with PyTorch's names.
struct AdadeltaOptions {
  double lr = 1;            ///< learning rate
  double rho = 0.9;         ///< decay of the running means
  double eps = 1e-6;        ///< added to the divisor
  double weight_decay = 0;  ///< L2 penalty
};

/// Steps in the units of the parameter. With g = gradient + weight_decay · p:
///   s = rho s + (1 - rho) g²;  u = g · √(d + eps) / √(s + eps);  d = rho d + (1 - rho) u²;  p -= lr · u
/// State: "square_avg" s and "acc_delta" d. Throws unless 0 <= rho <= 1 and the other options are finite and
/// at least 0. (Zeiler 2012, in PyTorch's form.)
class Adadelta final : public Optimizer {
 public:
  using Options = AdadeltaOptions;        ///< of all parameters, or of a group
  using Group = ParameterGroup<Options>;  ///< parameters with their options

  // --- one parameter group, or several; throws "Name: …" for an option out of range
  explicit Adadelta(Parameters params, Options options = {});
  explicit Adadelta(std::vector<Group> groups);

 private:
  Update update(const Parameter& p, double scale) const override;

  std::vector<Options> options_;
};

}  // namespace rill::optim

#pragma GCC visibility pop
