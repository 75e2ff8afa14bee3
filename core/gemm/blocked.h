/// Matrix products with operands rearranged ("packed") for the registers and caches of the processor.
///
/// BLAS packs its operands at every call, which dominates when C has few rows. Weights that are used many
/// times, as recurrent weights are, are packed once here. `blocked_gemm` does the same for one product, block
/// by block.
///
/// Every element of a result is one sum over k in a fixed order, whatever rows and columns are computed with
/// it: with beta 0 or 1, any split of rows or columns over calls and threads gives the same bits.
#pragma once

#include <rill/core/gemm/matrix_view.h>

namespace rill::kernels {

/// Elements that `pack` writes for a [k, n] matrix.
template <class T>
std::int64_t packed_size(std::int64_t k, std::int64_t n) noexcept;

/// Packs B [k, n] into packed_size<T>(k, n) elements, aligned to 64 bytes. The layout depends on the
/// processor: a packed matrix lives no longer than the process.
template <class T>
void pack(MatrixView<const T> b, T* packed) noexcept;

/// C = A B + beta C with B packed, A and C not transposed. Beta 0 overwrites C whatever it held.
template <class T>
void packed_gemm(MatrixView<const T> a, const T* packed, T beta, MatrixView<T> c) noexcept;

/// Elements of workspace that `blocked_gemm` needs, whatever the sizes.
template <class T>
std::int64_t blocked_workspace() noexcept;

/// C = A B + beta C with C not transposed, worth it from some 100 000 multiplications on. Beta 0 overwrites C
/// whatever it held. `workspace` is aligned to 64 bytes; its content does not matter.
template <class T>
void blocked_gemm(MatrixView<const T> a, MatrixView<const T> b, T beta, MatrixView<T> c,
                  T* workspace) noexcept;

}  // namespace rill::kernels
