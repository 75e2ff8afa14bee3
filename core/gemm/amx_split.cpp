#include <rill/core/gemm/amx_split.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include <rill/core/gemm/tile.h>

namespace rill::kernels::amx {
namespace {

using Words __attribute__((vector_size(64), may_alias)) = std::uint32_t;
using Floats __attribute__((vector_size(64), may_alias)) = float;

// For the transpose of tile.h: vectors of one row of a tile, at any level.
struct WholeLine {
  static constexpr int bytes = 64;
  [[maybe_unused]] static constexpr int vectors = 1;
};

// Rounds float32 to bfloat16, the upper half of a word, halves away from 0.
RILL_INLINE void rounded(const Words& x, Words& to) noexcept { to = (x + 0x8000U) & 0xffff0000U; }

// Subtracts its rounded form from x; exact.
RILL_INLINE void take_rest(Words& x, const Words& taken) noexcept {
  Floats rest;
  Floats whole;
  std::memcpy(&rest, &x, sizeof(rest));
  std::memcpy(&whole, &taken, sizeof(whole));
  rest -= whole;
  std::memcpy(&x, &rest, sizeof(rest));
}

// Sets the highest bit for elements from split_limit on, infinity and NaN.
RILL_INLINE void mark_unsplittable(const Words& x, Words& marks) noexcept {
  marks |= (x & 0x7fffffffU) + (0x80000000U - std::bit_cast<std::uint32_t>(split_limit));
}

// One row of a tile of each term, from elements consecutive in depth. Terms are 2 tiles apart.
RILL_INLINE void split_pairs(const Words& first, const Words& second, std::uint32_t* row,
                             Words& marks) noexcept {
  Words low = first;
  Words high = second;
  mark_unsplittable(low, marks);
  mark_unsplittable(high, marks);
#pragma GCC unroll 3
  for (std::int64_t term = 0; term < terms; ++term) {
    Words from_low;
    Words from_high;
    rounded(low, from_low);
    rounded(high, from_high);
    const Words pairs = from_low >> 16 | from_high;
    std::memcpy(row + 2 * term * tile_words, &pairs, sizeof(pairs));
    if (term == terms - 1) break;
    take_rest(low, from_low);
    take_rest(high, from_high);
  }
}

RILL_INLINE void load_vector(const float* from, Words& to) noexcept { std::memcpy(&to, from, sizeof(to)); }

// Separates 32 elements into those at even and at odd indices.
template <std::size_t... lane>
RILL_INLINE void separate(const float* from, Words& even, Words& odd, std::index_sequence<lane...>) noexcept {
  Words first;
  Words second;
  load_vector(from, first);
  load_vector(from + tile_side, second);
  even = __builtin_shufflevector(first, second, (2 * lane)...);
  odd = __builtin_shufflevector(first, second, (2 * lane + 1)...);
}

// Splits a whole block and prefetches the one that starts at `next`: its rows are too far apart for the
// hardware prefetcher.
RILL_KERNEL bool split_block(Role role, MatrixView<const float> from, const float* next,
                             std::uint32_t* to) noexcept {
  constexpr auto lanes = std::make_index_sequence<tile_side>();
  Words marks = {};
  for (std::int64_t tile = 0; tile < 2; ++tile) {
    std::uint32_t* const tile_at = to + tile * tile_words;
    for (std::int64_t i = 0; i < tile_side; ++i) {
      const float* const next_row = next + (tile * tile_side + i) * from.ld;
      __builtin_prefetch(next_row);
      __builtin_prefetch(next_row + tile_side);
      Words low;
      Words high;
      if (!from.transposed) {
        separate(from.at(tile * tile_side + i, 0), low, high, lanes);
      } else {
        load_vector(from.at(tile * tile_side, 2 * i), low);
        load_vector(from.at(tile * tile_side, 2 * i + 1), high);
      }
      split_pairs(low, high, tile_at + i * tile_side, marks);
    }
    // A row of the tile is now a line if lines are rows in memory, otherwise a pair of elements.
    if (from.transposed == (role == Role::right)) continue;
    for (std::int64_t term = 0; term < terms; ++term) {
      auto* const words = reinterpret_cast<float*>(tile_at + 2 * term * tile_words);
      transpose<float, WholeLine>(words, tile_side, words, tile_side, lanes);
    }
  }
  std::uint32_t any = 0;
  for (std::int64_t lane = 0; lane < tile_side; ++lane) any |= marks[lane];
  return any >> 31 == 0;
}

// Splits a partial block, or one with unsplittable elements, from a copy in which the missing elements are 0.
bool split_copy(Role role, MatrixView<const float> from, std::uint32_t* to) noexcept {
  alignas(64) float copy[block_lines * block_depth] = {};
  const MatrixView<const float> stored = from.transposed ? from.t() : from;
  for (std::int64_t i = 0; i < stored.rows; ++i)
    std::copy_n(stored.at(i, 0), stored.columns, copy + i * block_depth);
  const MatrixView<const float> padded{copy, block_lines, block_depth, block_depth, from.transposed};
  if (split_block(role, padded, copy, to)) return true;
  for (float& x : copy) x = is_splittable(x) ? x : 0;
  split_block(role, padded, copy, to);
  return false;
}

// C [rows, 32].
template <bool keep>
RILL_KERNEL void add_rows(const float* sums, float beta, MatrixView<float> c) noexcept {
  for (std::int64_t i = 0; i < c.rows; ++i) {
    float* const row = c.data + i * c.ld;
#pragma omp simd
    for (std::int64_t j = 0; j < block_lines; ++j) {
      const float sum = sums[i * block_lines + j];
      row[j] = keep ? sum + beta * row[j] : sum;
    }
  }
}

template <bool only_unsplittable>
RILL_KERNEL void scale_row(std::int64_t n, float x, const float* y, float* c) noexcept {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) {
    if (!only_unsplittable || !(std::fabs(y[j]) < split_limit)) c[j] += x * y[j];
  }
}

}  // namespace

bool split(Role role, MatrixView<const float> lines, std::uint32_t* to, std::int64_t stride) noexcept {
  bool all_splittable = true;
  for (std::int64_t i = 0; i < lines.rows; i += block_lines) {
    std::uint32_t* block = to + i / block_lines * stride;
    for (std::int64_t p = 0; p < lines.columns; p += block_depth) {
      const std::int64_t count = std::min(block_lines, lines.rows - i);
      const std::int64_t depth = std::min(block_depth, lines.columns - p);
      const MatrixView<const float> from = lines.block(i, p, count, depth);
      const bool is_whole = count == block_lines && depth == block_depth;
      const float* const next =
          p + block_depth < lines.columns ? lines.at(i, p + block_depth) : lines.at(i + count, 0);
      if (!is_whole || !split_block(role, from, next, block))
        all_splittable = split_copy(role, from, block) && all_splittable;
      block += block_words;
    }
  }
  return all_splittable;
}

void unsplit_row(const std::uint32_t* right, std::int64_t stride, std::int64_t count, std::int64_t p,
                 float* to) noexcept {
  for (std::int64_t j = 0; j < count; ++j) {
    const std::uint32_t* const block = right + j / block_lines * stride + p / block_depth * block_words;
    const std::int64_t column = j % block_lines;
    const std::int64_t at =
        column / tile_side * tile_words + p % block_depth / 2 * tile_side + column % tile_side;
    to[j] = 0;
    for (std::int64_t term = terms - 1; term >= 0; --term) {
      const std::uint32_t pair = block[2 * term * tile_words + at];
      to[j] += std::bit_cast<float>(p % 2 == 0 ? pair << 16 : pair & 0xffff0000U);
    }
  }
}

void add_sums(const float* sums, float beta, MatrixView<float> c) noexcept {
  if (c.columns != block_lines) return put_edge(sums, block_lines, 1, beta, c);
  beta == 0 ? add_rows<false>(sums, beta, c) : add_rows<true>(sums, beta, c);
}

void add_scaled(std::int64_t n, float x, const float* y, bool only_unsplittable, float* c) noexcept {
  only_unsplittable ? scale_row<true>(n, x, y, c) : scale_row<false>(n, x, y, c);
}

}  // namespace rill::kernels::amx
