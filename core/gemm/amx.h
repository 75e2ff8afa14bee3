/// Products of float32 matrices with AMX, the bfloat16 tiles of some processors.
///
/// Every element is split into three terms of bfloat16, x = x1 + x2 + x3, each the rounded remainder of the
/// previous ones. Of the nine products that make up x y, the six largest are computed and added in float32:
/// x1 y1, x1 y2, x1 y3, x2 y1, x2 y2, x3 y1. The omitted products are below 2^-23 |x y| and mostly far below,
/// so errors are comparable to those of float32 arithmetic (docs/numerics.md). NaN, infinities and elements
/// from 2^59 on, whose terms would overflow, are multiplied in float32. Terms and partial sums below 2^-126,
/// the smallest normal value, are flushed to 0.
///
/// Every element of a result is a sum over k in a fixed order, independent of the other rows and columns:
/// with beta 0 or 1, any partition of rows or columns over calls and threads gives bitwise the same result,
/// which differs from that of other kernels.
///
/// Method: Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For
/// Higher-Precision Computations", 2019.
#pragma once

#include <rill/core/gemm/matrix_view.h>

namespace rill::kernels {

/// Whether the processor and operating system support AMX and the kernels run at x86-64-v4. The first call
/// requests permission from the system: from then on Linux rejects alternate signal stacks too small for the
/// contents of tiles (8 KiB is too small), and if a thread already has such a stack, it denies the
/// permission. The functions below require that this is true.
bool has_amx() noexcept;

/// Bytes that `amx_pack` writes for a [k, n] matrix.
std::int64_t amx_packed_size(std::int64_t k, std::int64_t n) noexcept;

/// Packs B [k, n] into amx_packed_size(k, n) bytes, aligned to 64. Returns false, and the result is unusable,
/// if B has an unsplittable element.
bool amx_pack(MatrixView<const float> b, void* packed) noexcept;

/// Bytes of workspace for `amx_packed_gemm` and `amx_gemm`, for any sizes. It is uninitialised and aligned to
/// 64 bytes.
std::int64_t amx_packed_workspace() noexcept;
std::int64_t amx_workspace() noexcept;

/// C = A B + beta C with B packed, A and C not transposed. Beta 0 overwrites C.
void amx_packed_gemm(MatrixView<const float> a, const void* packed, float beta, MatrixView<float> c,
                     void* workspace) noexcept;

/// C = A B + beta C with C not transposed. Beta 0 overwrites C.
void amx_gemm(MatrixView<const float> a, MatrixView<const float> b, float beta, MatrixView<float> c,
              void* workspace) noexcept;

}  // namespace rill::kernels
