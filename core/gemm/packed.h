/// Matrix products with operands rearranged ("packed") for the registers and caches of the processor.
///
/// BLAS packs its operands at every call, which dominates when C has few rows. Weights that are used many
/// times, as recurrent weights are, are packed once here. `blocked_gemm` does the same for one product, block
/// by block.
///
/// Every element of a result is one sum over k in a fixed order, whatever rows and columns are computed with
/// it: with beta 0 or 1, any split of rows or columns over calls and threads gives the same bits.
#pragma once

#include <cstdint>

namespace rill::kernels {

/// How many elements `pack` writes for a [k, n] matrix.
template <class T>
std::int64_t packed_size(std::int64_t k, std::int64_t n) noexcept;

/// Packs op(B) [k, n]; `transposed`: B is stored [n, k]. `ldb` is the distance between stored rows. `packed`
/// has packed_size<T>(k, n) elements and is aligned to 64 bytes. The layout depends on the processor: a
/// packed matrix lives no longer than the process.
template <class T>
void pack(bool transposed, std::int64_t k, std::int64_t n, const T* b, std::int64_t ldb, T* packed) noexcept;

/// C [m, n] = A [m, k] B + beta C with B packed. Beta 0 overwrites C whatever it held.
template <class T>
void packed_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda,
                 const T* packed, T beta, T* c, std::int64_t ldc) noexcept;

/// How many elements of workspace `blocked_gemm` needs, whatever the sizes.
template <class T>
std::int64_t blocked_workspace() noexcept;

/// C = op(A) op(B) + beta C as kernels::gemm, without BLAS: worth it from some 100 000 multiplications on.
/// `workspace` is aligned to 64 bytes; its content does not matter.
template <class T>
void blocked_gemm(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
                  std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc,
                  T* workspace) noexcept;

}  // namespace rill::kernels
