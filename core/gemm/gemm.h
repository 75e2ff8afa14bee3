/// Matrix products on the team of threads.
#pragma once

#include <cstdint>

namespace rill {

/// C = op(A) op(B) + beta C as kernels::gemm, on several threads when the product is large.
///
/// Small products are BLAS's; larger ones are done by kernels::thin_gemm where A has few rows, otherwise by
/// kernels::amx_gemm or kernels::blocked_gemm, which may be cut anywhere; what BLAS still does of the thin
/// ones (A transposed, one row, few columns) is cut where the sizes alone say. So the result has the same
/// bits for any number of threads. Throws Error if a size or distance does not fit BLAS (2^31 - 1).
template <class T>
void parallel_gemm(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
                   std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc);

extern template void parallel_gemm<float>(bool, bool, std::int64_t, std::int64_t, std::int64_t, const float*,
                                          std::int64_t, const float*, std::int64_t, float, float*,
                                          std::int64_t);
extern template void parallel_gemm<double>(bool, bool, std::int64_t, std::int64_t, std::int64_t,
                                           const double*, std::int64_t, const double*, std::int64_t, double,
                                           double*, std::int64_t);

}  // namespace rill
