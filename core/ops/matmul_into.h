/// Matrix products that write into an existing tensor, for backward functions.
///
/// Public, for custom ops (core/extend.h).
#pragma once

#include <algorithm>
#include <optional>

#include <rill/core/autograd.h>
#include <rill/core/gemm/matrix_view.h>

#pragma GCC visibility push(default)

namespace rill {

/// slot.to = slot.beta · slot.to + a b for matrices a [M, K], b [K, N], to [M, N] of any layout and the same
/// floating dtype; shapes are not checked. Operands with a unit stride are not copied.
void matmul_into(const Slot& slot, const Tensor& a, const Tensor& b);

/// slot.to [N] = slot.beta · slot.to + the column sums of x [M, N].
void sum_rows_into(const Slot& slot, const Tensor& x);

/// A matrix t [M, N] of dtype T as an operand of gemm, or nullopt if its layout is neither row-major nor
/// column-major, so that a product needs a copy. A view of non-const T does not bump the version.
template <class T>
std::optional<MatrixView<T>> matrix_view(const Tensor& t) noexcept {
  const std::int64_t rows = t.shape()[0], columns = t.shape()[1];
  const std::int64_t down = t.strides()[0], across = t.strides()[1];
  const auto ld_of = [](std::int64_t lines, std::int64_t length, std::int64_t stride) {
    return lines <= 1 ? std::max<std::int64_t>(length, 1) : stride;
  };
  if ((across == 1 || columns <= 1) && (rows <= 1 || down >= std::max<std::int64_t>(columns, 1)))
    return MatrixView<T>{detail::raw<T>(t), rows, columns, ld_of(rows, columns, down)};
  if ((down == 1 || rows <= 1) && (columns <= 1 || across >= std::max<std::int64_t>(rows, 1)))
    return MatrixView<T>{detail::raw<T>(t), rows, columns, ld_of(columns, rows, across), true};
  return std::nullopt;
}

}  // namespace rill

#pragma GCC visibility pop
