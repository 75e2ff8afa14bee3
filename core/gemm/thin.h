/// Products with few rows, which read B once without packing, since packing would cost several times as much.
#pragma once

#include <rill/core/gemm/matrix_view.h>

namespace rill::kernels {

/// C = A B + beta C for at most 64 rows, with A and C not transposed. Beta 0 overwrites C. Every element is a
/// sum over k in a fixed order: with beta 0 or 1 it is bitwise independent of the other columns.
template <class T>
void thin_gemm(MatrixView<const T> a, MatrixView<const T> b, T beta, MatrixView<T> c) noexcept;

extern template void thin_gemm(MatrixView<const float>, MatrixView<const float>, float,
                               MatrixView<float>) noexcept;
extern template void thin_gemm(MatrixView<const double>, MatrixView<const double>, double,
                               MatrixView<double>) noexcept;

}  // namespace rill::kernels
