/// Checks of modules: their gradients, and that the members are listed.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include <rill/core/gradcheck.h>
#include <rill/nn/module.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// While it lives, a module computes with other tensors in place of its leaves (`Module::parameters`, in that
/// order), so that results are a function of them, with gradients. They may have any layout and dtype. The
/// module must not be moved meanwhile. Throws when their number or shapes do not fit.
class Substitution {
 public:
  /// Puts the values in place.
  Substitution(Module& module, std::span<const Tensor> values);
  /// Puts the leaves back.
  ~Substitution();
  Substitution(const Substitution&) = delete;
  Substitution& operator=(const Substitution&) = delete;

 private:
  std::vector<std::pair<Tensor*, Tensor>> originals_;
};

/// Throws unless a backward pass from `loss`, which `module` was used for, would give a gradient to each of
/// its parameters and to nothing else but `inputs`. Names every leaf that wants a gradient and is no
/// parameter (a member missing in `members`), by its shape and an op that reads it, and every parameter that
/// gets none: it does not require one, or the loss does not depend on it. To be called before backward.
void check_members(const Module& module, const Tensor& loss, const std::vector<Tensor>& inputs = {});

/// rill::gradcheck of a module: `f` uses the module on `inputs` (float64, and other dtypes passed through)
/// and gives one or more results; their gradients are checked for every input that requires one and for every
/// parameter. The module must be float64 (`to`) and repeat itself: no dropout while training.
///
/// The report names parameters as `named_parameters` does, "a.weight [0, 2]"; `options.names` are those of
/// the inputs, which are counted after the leaves in `GradcheckReport::input`. Throws as check_members does.
GradcheckReport gradcheck(Module& module, const GradcheckFunction& f, const std::vector<Tensor>& inputs = {},
                          const GradcheckOptions& options = {});

}  // namespace rill::nn

#pragma GCC visibility pop
