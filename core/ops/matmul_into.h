/// Matrix products into a given place, for ops that compute gradients with them.
#pragma once

#include <rill/core/autograd.h>

namespace rill {

/// slot.to = slot.beta · slot.to + a·b for matrices a [M,K], b [K,N], to [M,N] of any layout and one floating
/// dtype; shapes must have been checked. Products with a unit stride in each operand need no copy.
void matmul_into(const Slot& slot, const Tensor& a, const Tensor& b);

/// slot.to [N] = slot.beta · slot.to + the column sums of x [M, N].
void sum_rows_into(const Slot& slot, const Tensor& x);

}  // namespace rill
