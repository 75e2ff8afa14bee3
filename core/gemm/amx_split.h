/// Operands and results of AMX products: float32 elements split into three bfloat16 terms, in blocks, and the
/// sums from tiles. Internal to core/gemm.
#pragma once

#include <cmath>
#include <cstdint>

#include <rill/core/gemm/matrix_view.h>
#include <rill/core/kernels/simd.h>

namespace rill::kernels::amx {

// A tile is 16 rows of 16 words: 16 × 16 elements of float32, or twice as many of bfloat16.
constexpr std::int64_t tile_side = 16;
constexpr std::int64_t tile_words = tile_side * tile_side;
constexpr std::int64_t terms = 3;

// A block holds the terms of 32 lines (rows of A or columns of B) over a depth of 32: for each term two
// tiles. A word is two elements consecutive in depth, the first one in its lower half. A tile of A has a line
// in each row, a tile of B in each column.
constexpr std::int64_t block_lines = 2 * tile_side;
constexpr std::int64_t block_depth = 2 * tile_side;
constexpr std::int64_t block_words = terms * 2 * tile_words;

/// Elements from this magnitude on are not split: below it, the products of terms, and the sum of all those
/// in a tile, do not overflow.
constexpr float split_limit = 0x1p59F;
inline bool is_splittable(float x) noexcept { return std::fabs(x) < split_limit; }

enum class Role : std::uint8_t { left, right };

/// Splits the rows of `lines`, which are rows of A or of B^T: writes for every 32 of them the blocks along
/// the depth consecutively, with `stride` words between groups of 32. The last blocks are padded with 0,
/// which also replaces the terms of unsplittable elements; returns false if there are any.
bool split(Role role, MatrixView<const float> lines, std::uint32_t* to, std::int64_t stride) noexcept;

/// Row p of a right operand [k, count], from its blocks.
void unsplit_row(const std::uint32_t* right, std::int64_t stride, std::int64_t count, std::int64_t p,
                 float* to) noexcept;

/// C = sums + beta C, with the sums in rows of 32. Beta 0 overwrites C.
void add_sums(const float* sums, float beta, MatrixView<float> c) noexcept;

/// C [n] += x y for every y [n], or only for the unsplittable ones.
void add_scaled(std::int64_t n, float x, const float* y, bool only_unsplittable, float* c) noexcept;

}  // namespace rill::kernels::amx
