/// The one door to matrix products: on the team of threads, by the kernel that suits the sizes.
///
/// Public, for those who write ops (core/extend.h); ops on tensors use matmul_into (core/ops/matmul_into.h).
#pragma once

#include <rill/core/gemm/matrix_view.h>

#pragma GCC visibility push(default)

namespace rill {

/// C = A B + beta C for A [m, k], B [k, n], C [m, n], any of them transposed. Beta 0 overwrites C whatever it
/// held. C overlaps neither A nor B.
///
/// Large products run on several threads. The result has the same bits for any number of them: work is cut
/// where the sizes alone say, or by rows or columns whose result does not depend on the cut. Throws Error if
/// the sizes do not fit or one of them, or a leading dimension, is beyond BLAS (2^31 - 1).
template <class T>
[[gnu::visibility("default")]] void gemm(MatrixView<const T> a, MatrixView<const T> b, T beta,
                                         MatrixView<T> c);

extern template void gemm(MatrixView<const float>, MatrixView<const float>, float, MatrixView<float>);
extern template void gemm(MatrixView<const double>, MatrixView<const double>, double, MatrixView<double>);

}  // namespace rill

#pragma GCC visibility pop
