/// Matrix products: dispatched to the kernel that suits the sizes and run on the thread team.
///
/// Public, for custom ops (core/extend.h); products of tensors are in core/ops/matmul_into.h.
#pragma once

#include <rill/core/gemm/matrix_view.h>

#pragma GCC visibility push(default)

namespace rill {

/// C = A B + beta C for A [m, k], B [k, n], C [m, n], any of them transposed. Beta 0 overwrites C, whatever
/// it contained. C must not overlap A or B.
///
/// Large products run on several threads. The result is bitwise the same for any number of threads: the work
/// is partitioned by the sizes alone, or by rows or columns whose result does not depend on the partition.
/// Throws Error if the sizes do not match, or if a size or leading dimension exceeds the limit of BLAS (2^31
/// - 1).
template <class T>
[[gnu::visibility("default")]] void gemm(MatrixView<const T> a, MatrixView<const T> b, T beta,
                                         MatrixView<T> c);

extern template void gemm(MatrixView<const float>, MatrixView<const float>, float, MatrixView<float>);
extern template void gemm(MatrixView<const double>, MatrixView<const double>, double, MatrixView<double>);

}  // namespace rill

#pragma GCC visibility pop
