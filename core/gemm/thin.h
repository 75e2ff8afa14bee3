/// Products with few rows, which read B once and where it lies: packing it would cost several times as much.
#pragma once

#include <cstdint>

namespace rill::kernels {

/// C [m, n] = A [m, k] B [k, n] + beta C for m <= 64; beta 0 overwrites C whatever it held. Every element is
/// one sum over k in a fixed order: with beta 0 or 1 it has the same bits, whatever columns are computed with
/// it.
template <class T>
void thin_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda, const T* b,
               std::int64_t ldb, T beta, T* c, std::int64_t ldc) noexcept;

/// The same with B^T in place of B, which is stored [n, k].
template <class T>
void thin_gemm_transposed(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda,
                          const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) noexcept;

}  // namespace rill::kernels
