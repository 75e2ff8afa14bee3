/// The affine map of few rows, for decoding: many steps with the same weights.
#pragma once

#include <rill/core/ops/stored_weight.h>

namespace rill::nn::detail {

/// x·W + b: x [m, in], bias [out]. If a gradient is required this is `linear`; otherwise a product with the
/// packed weight, whose rows are independent of each other (with AMX, results for 16 rows or more differ in
/// rounding from those for fewer). Threads compute different blocks of columns.
Tensor packed_linear(const Tensor& x, const StoredWeight& weight, const Tensor& bias);

}  // namespace rill::nn::detail
