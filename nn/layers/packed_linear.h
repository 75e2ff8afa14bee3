/// The affine map of few rows, as decoding needs it: step after step with the same weights.
#pragma once

#include <rill/core/ops/stored_weight.h>

namespace rill::nn::detail {

/// x·W + b: x [m, in], bias [out]. Where a gradient is wanted this is `linear`; otherwise a
/// product with the packed weight, whose rows do not depend on each other (though with AMX those of 16 rows
/// and more differ in rounding from those of fewer). Blocks of columns go to different threads.
Tensor packed_linear(const Tensor& x, const StoredWeight& weight, const Tensor& bias);

}  // namespace rill::nn::detail
