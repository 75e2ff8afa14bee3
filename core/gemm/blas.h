/// Matrix products through BLAS, one thread a call.
#pragma once

#include <cstdint>

namespace rill::kernels {

/// C = op(A) op(B) + beta C, row-major: op(A) is [m, k], op(B) is [k, n], C is [m, n].
///
/// `ta`: A is stored [k, m]; `tb`: B is stored [n, k]. `lda`, `ldb`, `ldc` are the distances between stored
/// rows. With `beta` 0, C is overwritten whatever it held. Every size and distance must be below 2^31. Runs
/// on the calling thread alone and may be called from any number of threads.
template <class T>
void gemm(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda,
          const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) noexcept;

extern template void gemm<float>(bool, bool, std::int64_t, std::int64_t, std::int64_t, const float*,
                                 std::int64_t, const float*, std::int64_t, float, float*,
                                 std::int64_t) noexcept;
extern template void gemm<double>(bool, bool, std::int64_t, std::int64_t, std::int64_t, const double*,
                                  std::int64_t, const double*, std::int64_t, double, double*,
                                  std::int64_t) noexcept;

/// Name, version and processor type of the BLAS in use.
const char* blas_name() noexcept;

}  // namespace rill::kernels
