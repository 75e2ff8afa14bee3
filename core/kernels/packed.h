/// Products with few rows by a matrix that is used many times, as recurrent weights are.
///
/// BLAS rearranges its operands at every call, which dominates when C has few rows. Here B is rearranged ("packed")
/// once. The layout depends on the processor: a packed matrix lives no longer than the process.
#pragma once

#include <cstdint>

namespace rill::kernels {

/// How many elements `pack` writes for a [k, n] matrix.
template <class T>
std::int64_t packed_size(std::int64_t k, std::int64_t n) noexcept;

/// Packs op(B) [k, n]; `transposed`: B is stored [n, k]. `ldb` is the distance between stored rows. `packed` has
/// packed_size<T>(k, n) elements and is aligned to 64 bytes.
template <class T>
void pack(bool transposed, std::int64_t k, std::int64_t n, const T* b, std::int64_t ldb, T* packed) noexcept;

/// C [m, n] = A [m, k] B + beta C with B packed. Beta 0 overwrites C whatever it held. A row of the result has
/// the same bits whatever m is, so rows may be split over threads anyhow.
template <class T>
void packed_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda,
                 const T* packed, T beta, T* c, std::int64_t ldc) noexcept;

}  // namespace rill::kernels
