/// What goes into tiles and comes out: numbers of float32 as sums of three of bfloat16, in blocks, and sums.
/// Internal to core/kernels.
#pragma once

#include <cmath>
#include <cstdint>

#include <rill/core/kernels/simd.h>

namespace rill::kernels::amx {

// A tile is 16 rows of 16 words: 16 × 16 numbers of float32, or twice as many of bfloat16.
constexpr std::int64_t tile_side = 16;
constexpr std::int64_t tile_words = tile_side * tile_side;
constexpr std::int64_t parts = 3;

// A block holds the parts of 32 lines (rows of A or columns of B) over a depth of 32: for each part two
// tiles. A word is two numbers that follow each other over the depth, the first one in its lower half. A tile
// of A has a line in each of its rows, a tile of B in each of its columns.
constexpr std::int64_t block_lines = 2 * tile_side;
constexpr std::int64_t block_depth = 2 * tile_side;
constexpr std::int64_t block_words = parts * 2 * tile_words;

/// Lines in memory: number p of line i is x[i · ld + p] where the numbers of a line follow each other
/// (`along`), otherwise x[p · ld + i].
struct Lines {
  const float* x;
  std::int64_t ld;
  bool along;

  RILL_INLINE const float* at(std::int64_t line, std::int64_t p) const noexcept {
    return x + (along ? line * ld + p : p * ld + line);
  }
  RILL_INLINE Lines from(std::int64_t line, std::int64_t p) const noexcept {
    return {at(line, p), ld, along};
  }
};

/// From here on a number has no parts and is multiplied as it is: below, the products of parts, and the sum
/// of as many as are summed up in a tile, do not overflow.
constexpr float least_without_parts = 0x1p59F;
inline bool has_parts(float x) noexcept { return std::fabs(x) < least_without_parts; }

enum class Side : std::uint8_t { left, right };

/// Writes the parts of `count` lines of `depth` numbers: for every 32 lines the blocks of their depth, one
/// after the other, and `stride` words from those to the next 32. Lines and numbers that fill up the last
/// blocks are 0, and so are the parts of numbers that have none; false when there were such.
bool split(Side side, Lines from, std::int64_t count, std::int64_t depth, std::uint32_t* to,
           std::int64_t stride) noexcept;

/// Number p of `count` columns, from the blocks of a right side.
void join(const std::uint32_t* right, std::int64_t stride, std::int64_t count, std::int64_t p,
          float* to) noexcept;

/// C [rows, columns] = sums + beta C, with the sums in rows of 32. Beta 0 overwrites C whatever it held.
void add_sums(std::int64_t rows, std::int64_t columns, const float* sums, float beta, float* c,
              std::int64_t ldc) noexcept;

/// C [n] += x y for every y [n], or for those alone that have no parts.
void add_scaled(std::int64_t n, float x, const float* y, bool without_parts_alone, float* c) noexcept;

}  // namespace rill::kernels::amx
