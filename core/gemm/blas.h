/// Matrix products through BLAS, one thread a call. The only room that knows BLAS; ops use gemm.h.
///
/// Loading rill changes nothing of the process's OpenBLAS. While products run, OpenBLAS (on OpenMP: the
/// calling thread) is set to one thread; afterwards it has its own number again. Where it took the processor
/// for a Prescott, the first product sets OPENBLAS_CORETYPE for a moment and has it choose kernels again.
#pragma once

#include <rill/core/gemm/matrix_view.h>

namespace rill::kernels {

/// C = A B + beta C, with C not transposed. Beta 0 overwrites C whatever it held. Every size and leading
/// dimension must be below 2^31. Runs on the calling thread; any number of threads may call it.
template <class T>
void blas_gemm(MatrixView<const T> a, MatrixView<const T> b, T beta, MatrixView<T> c) noexcept;

extern template void blas_gemm(MatrixView<const float>, MatrixView<const float>, float,
                               MatrixView<float>) noexcept;
extern template void blas_gemm(MatrixView<const double>, MatrixView<const double>, double,
                               MatrixView<double>) noexcept;

/// Name, version and processor type of the BLAS in use.
const char* blas_name() noexcept;

}  // namespace rill::kernels
