/// Clipping of gradients by their norm and by value.
#pragma once

#include <rill/optim/parameters.h>

#pragma GCC visibility push(default)

namespace rill::optim {

/// The norm of all gradients as one vector: (Σ |g|^p)^(1/p) with p = norm_type, or max |g| for infinity.
///
/// Summed in float64 on several threads, in an order that depends on the sizes alone. Parameters without a
/// gradient are skipped, and duplicates count once. Throws unless norm_type > 0.
double grad_norm(const Parameters& parameters, double norm_type = 2);

/// Scales all gradients by min(1, max_norm / (norm + 1e-6)) and returns the norm before scaling.
///
/// If the norm is not finite, the gradients are unchanged: check the result, or use Optimizer::step_clipped,
/// which skips such a step. Throws unless max_norm >= 0 and norm_type > 0. (PyTorch's
/// torch.nn.utils.clip_grad_norm_.)
double clip_grad_norm_(const Parameters& parameters, double max_norm, double norm_type = 2);

/// Clamps every element of the gradients to [-clip_value, clip_value]; NaN is kept. Throws unless clip_value
/// >= 0.
void clip_grad_value_(const Parameters& parameters, double clip_value);

}  // namespace rill::optim

#pragma GCC visibility pop
