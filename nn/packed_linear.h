/// The affine map of few rows, as decoding needs it: step after step with the same weights.
#pragma once

#include <rill/core/tensor.h>

namespace rill::nn::detail {

/// x·Wᵀ + b: x [m, k], weight [n, k], bias [n]. Where a gradient is wanted this is `linear`; otherwise a
/// product with the packed weight, whose rows do not depend on each other: a sentence is decoded alone as it
/// is in a batch, bit by bit. Blocks of columns go to different threads.
Tensor packed_linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace rill::nn::detail
