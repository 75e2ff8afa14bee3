/// Checks of modules: gradients, and completeness of `members`.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include <rill/core/gradcheck.h>
#include <rill/nn/module.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// Replaces the leaves of a module (in the order of `Module::parameters`) by other tensors until the end of
/// the scope, so that its results are a differentiable function of them. They may have any layout and dtype.
/// The module must not be moved meanwhile. Throws if their number or shapes do not match.
class Substitution {
 public:
  /// Replaces the leaves.
  Substitution(Module& module, std::span<const Tensor> values);
  /// Restores the leaves.
  ~Substitution();
  Substitution(const Substitution&) = delete;
  Substitution& operator=(const Substitution&) = delete;

 private:
  std::vector<std::pair<Tensor*, Tensor>> originals_;
};

/// Throws unless a backward pass from `loss`, computed with `module`, would reach each of its parameters and
/// no other leaves but `inputs`. Names every other leaf that requires a gradient (a member missing in
/// `members`), by its shape and an op that reads it, and every parameter without a gradient, because it does
/// not require one or the loss does not depend on it. Call it before backward.
void check_members(const Module& module, const Tensor& loss, const std::vector<Tensor>& inputs = {});

/// rill::gradcheck of a module: `f` uses the module on `inputs` (float64, and other dtypes passed through)
/// and gives one or more results; their gradients are checked for every input that requires one and for every
/// parameter. The module must be float64 (`to`) and deterministic: no dropout in training mode.
///
/// The report names parameters like `named_parameters`, "a.weight [0, 2]". `options.names` are the names of
/// the inputs, which follow the leaves in `GradcheckReport::input`. Throws like check_members.
GradcheckReport gradcheck(Module& module, const GradcheckFunction& f, const std::vector<Tensor>& inputs = {},
                          const GradcheckOptions& options = {});

}  // namespace rill::nn

#pragma GCC visibility pop
