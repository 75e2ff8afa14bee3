/// Products of float32 matrices on the tiles of bfloat16 that some processors have (AMX).
///
/// Every element is split into three terms of bfloat16, x = x1 + x2 + x3, each the rounded rest of those
/// before it. Of the nine products that make up x y, the six greatest are computed and added in float32:
/// x1 y1, x1 y2, x1 y3, x2 y1, x2 y2, x3 y1. What is left out is below 2^-23 |x y| and mostly far below, so
/// the errors are of the size of those of float32 arithmetic (docs/numerics.md). NaN, infinities and elements
/// from 2^59 on, whose terms could not be multiplied one by one, are multiplied in float32. Terms, and sums
/// at every step, below 2^-126, the least normal number, count as 0.
///
/// Every element of a result is one sum over k in a fixed order, whatever rows and columns are computed with
/// it: with beta 0 or 1, any split of rows or columns over calls and threads gives the same bits, which are
/// not those of other kernels.
///
/// The method is that of Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype
/// For Higher-Precision Computations", 2019.
#pragma once

#include <rill/core/gemm/matrix_view.h>

namespace rill::kernels {

/// Whether this processor and operating system have such tiles and the kernels run at x86-64-v4. Asks the
/// system for their use at the first call: from then on Linux refuses the process alternate signal stacks
/// that have no room for the contents of tiles (8 KiB have not), and where a thread has such a stack already,
/// it refuses the tiles. Nothing else here may be called without.
bool has_amx() noexcept;

/// Bytes that `amx_pack` writes for a [k, n] matrix.
std::int64_t amx_packed_size(std::int64_t k, std::int64_t n) noexcept;

/// Packs B [k, n] into amx_packed_size(k, n) bytes, aligned to 64. False, and of no use, when B has an
/// element that is not splittable.
bool amx_pack(MatrixView<const float> b, void* packed) noexcept;

/// Bytes of workspace that `amx_packed_gemm` and `amx_gemm` need, whatever the sizes. It is aligned to 64
/// bytes; its content does not matter.
std::int64_t amx_packed_workspace() noexcept;
std::int64_t amx_workspace() noexcept;

/// C = A B + beta C with B packed, A and C not transposed. Beta 0 overwrites C whatever it held.
void amx_packed_gemm(MatrixView<const float> a, const void* packed, float beta, MatrixView<float> c,
                     void* workspace) noexcept;

/// C = A B + beta C with C not transposed. Beta 0 overwrites C whatever it held.
void amx_gemm(MatrixView<const float> a, MatrixView<const float> b, float beta, MatrixView<float> c,
              void* workspace) noexcept;

}  // namespace rill::kernels
