/// Gradient checks of modules.
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

/// rill::gradcheck of a module: `f` uses the module on `inputs` (float64, and other dtypes passed through)
/// and gives one or more results; their gradients are checked for every input that requires one and for every
/// parameter. The module must be float64 (`to`) and repeat itself: no dropout while training.
GradcheckReport gradcheck(Module& module, const GradcheckFunction& f, const std::vector<Tensor>& inputs = {},
                          const GradcheckOptions& options = {});

}  // namespace rill::nn

#pragma GCC visibility pop
