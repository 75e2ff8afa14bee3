/// Matrix products with operands packed for the registers and caches of the processor.
///
/// BLAS packs its operands at every call, which dominates when C has few rows. Weights that are used many
/// times, such as recurrent weights, are packed once here. `blocked_gemm` packs block by block for a single
/// product.
///
/// Every element of a result is a sum over k in a fixed order, independent of the other rows and columns:
/// with beta 0 or 1, any partition of rows or columns over calls and threads gives bitwise the same result.
#pragma once

#include <rill/core/gemm/matrix_view.h>

namespace rill::kernels {

/// Elements that `pack` writes for a [k, n] matrix.
template <class T>
std::int64_t packed_size(std::int64_t k, std::int64_t n) noexcept;

/// Packs B [k, n] into packed_size<T>(k, n) elements, aligned to 64 bytes. The layout depends on the
/// processor, so a packed matrix must not be stored.
template <class T>
void pack(MatrixView<const T> b, T* packed) noexcept;

/// C = A B + beta C with B packed, A and C not transposed. Beta 0 overwrites C.
template <class T>
void packed_gemm(MatrixView<const T> a, const T* packed, T beta, MatrixView<T> c) noexcept;

/// Elements of workspace for `blocked_gemm`, for any sizes.
template <class T>
std::int64_t blocked_workspace() noexcept;

/// C = A B + beta C with C not transposed; worthwhile from about 100,000 multiplications. Beta 0 overwrites
/// C. `workspace` is uninitialised and aligned to 64 bytes.
template <class T>
void blocked_gemm(MatrixView<const T> a, MatrixView<const T> b, T beta, MatrixView<T> c,
                  T* workspace) noexcept;

}  // namespace rill::kernels
