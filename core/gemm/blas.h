/// Matrix products by BLAS, single-threaded. The only file that uses BLAS; ops use gemm.h.
///
/// Loading rill does not affect the process's OpenBLAS. While products run, OpenBLAS (with OpenMP: the
/// calling thread) is set to one thread; afterwards the previous count is restored. If OpenBLAS did not
/// recognize the processor, the first product temporarily sets OPENBLAS_CORETYPE and makes it select kernels
/// again.
#pragma once

#include <rill/core/gemm/matrix_view.h>

namespace rill::kernels {

/// C = A B + beta C, with C not transposed. Beta 0 overwrites C. All sizes and leading dimensions must be
/// below 2^31. Runs on the calling thread; thread-safe.
template <class T>
void blas_gemm(MatrixView<const T> a, MatrixView<const T> b, T beta, MatrixView<T> c) noexcept;

extern template void blas_gemm(MatrixView<const float>, MatrixView<const float>, float,
                               MatrixView<float>) noexcept;
extern template void blas_gemm(MatrixView<const double>, MatrixView<const double>, double,
                               MatrixView<double>) noexcept;

/// Name, version and processor type of the BLAS in use.
const char* blas_name() noexcept;

}  // namespace rill::kernels
