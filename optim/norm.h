/// The norm used for clipping by clip_grad_norm_ and Optimizer::step_clipped. Internal to optim.
#pragma once

#include <vector>

#include <rill/optim/flat.h>

namespace rill::optim::detail {

/// The norm of contiguous gradients in the order of `flat`; undefined ones are skipped. Throws unless
/// norm_type > 0.
double norm_of(const Flat& flat, const std::vector<Tensor>& gradients, double norm_type);

/// min(1, max_norm / (norm + 1e-6)); throws unless max_norm >= 0.
double clip_factor(const char* op, double norm, double max_norm);

}  // namespace rill::optim::detail
