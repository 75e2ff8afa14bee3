/// Clipping of gradients by their norm and by value.
#pragma once

#include <rill/optim/parameters.h>

#pragma GCC visibility push(default)

namespace rill::optim {

/// The norm of all gradients as one vector: (Σ |g|^p)^(1/p) with p = norm_type, or max |g| for infinity.
///
/// Summed in double, in an order that depends on the sizes alone, on several threads. Parameters without a
/// gradient are passed over, and one that is listed twice counts once. Throws unless norm_type > 0.
double grad_norm(const Parameters& parameters, double norm_type = 2);

/// Scales all gradients by min(1, max_norm / (norm + 1e-6)) and returns the norm they had.
///
/// When the norm is not finite the gradients stay as they are: look at the result, or use
/// Optimizer::step_clipped, which skips such a step. Throws unless max_norm >= 0 and norm_type > 0.
/// (PyTorch's torch.nn.utils.clip_grad_norm_.)
double clip_grad_norm_(const Parameters& parameters, double max_norm, double norm_type = 2);

/// Brings every element of the gradients into [-clip_value, clip_value]; NaN stays. Throws unless clip_value
/// >= 0.
void clip_grad_value_(const Parameters& parameters, double clip_value);

}  // namespace rill::optim

#pragma GCC visibility pop
