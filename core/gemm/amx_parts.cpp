#include <rill/core/gemm/amx_parts.h>

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

// For tile.h's transpose: vectors of a row of a tile, at whatever level.
struct WholeLine {
  static constexpr int bytes = 64;
  [[maybe_unused]] static constexpr int vectors = 1;
};

// The upper half of a word is bfloat16. Rounds halves away from 0, in a number of float32.
RILL_INLINE void rounded(const Words& x, Words& to) noexcept { to = (x + 0x8000U) & 0xffff0000U; }

// What is left of x without its rounded form; exact.
RILL_INLINE void take_rest(Words& x, const Words& taken) noexcept {
  Floats rest;
  Floats whole;
  std::memcpy(&rest, &x, sizeof(rest));
  std::memcpy(&whole, &taken, sizeof(whole));
  rest -= whole;
  std::memcpy(&x, &rest, sizeof(rest));
}

// Its highest bit is set for a number from 2^59 on, infinity and NaN.
RILL_INLINE void mark_without_parts(const Words& x, Words& marks) noexcept {
  marks |= (x & 0x7fffffffU) + (0x80000000U - std::bit_cast<std::uint32_t>(least_without_parts));
}

// Row `row` of a tile of each part: words of the parts of numbers that follow each other
// over the depth. Parts are 2 tiles apart.
RILL_INLINE void split_pairs(const Words& first, const Words& second, std::uint32_t* row,
                             Words& marks) noexcept {
  Words low = first;
  Words high = second;
  mark_without_parts(low, marks);
  mark_without_parts(high, marks);
#pragma GCC unroll 3
  for (std::int64_t part = 0; part < parts; ++part) {
    Words from_low;
    Words from_high;
    rounded(low, from_low);
    rounded(high, from_high);
    const Words pairs = from_low >> 16 | from_high;
    std::memcpy(row + 2 * part * tile_words, &pairs, sizeof(pairs));
    if (part == parts - 1) break;
    take_rest(low, from_low);
    take_rest(high, from_high);
  }
}

RILL_INLINE void load_vector(const float* from, Words& to) noexcept { std::memcpy(&to, from, sizeof(to)); }

// From 32 numbers that follow each other to those at even and at odd places.
template <std::size_t... lane>
RILL_INLINE void separate(const float* from, Words& even, Words& odd, std::index_sequence<lane...>) noexcept {
  Words first;
  Words second;
  load_vector(from, first);
  load_vector(from + tile_side, second);
  even = __builtin_shufflevector(first, second, (2 * lane)...);
  odd = __builtin_shufflevector(first, second, (2 * lane + 1)...);
}

// One block from memory that holds all of it, while the one that begins at `next` is on its way: its rows are
// too far apart for the processor to guess them.
RILL_KERNEL bool split_block(Side side, Lines from, const float* next, std::uint32_t* to) noexcept {
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
      if (from.along) {
        separate(from.at(tile * tile_side + i, 0), low, high, lanes);
      } else {
        load_vector(from.at(tile * tile_side, 2 * i), low);
        load_vector(from.at(tile * tile_side, 2 * i + 1), high);
      }
      split_pairs(low, high, tile_at + i * tile_side, marks);
    }
    // A row of the tile now is a line where lines are rows in memory, otherwise a pair of numbers.
    if (from.along == (side == Side::left)) continue;
    for (std::int64_t part = 0; part < parts; ++part) {
      auto* const words = reinterpret_cast<float*>(tile_at + 2 * part * tile_words);
      transpose<float, WholeLine>(words, tile_side, words, tile_side, lanes);
    }
  }
  std::uint32_t any = 0;
  for (std::int64_t lane = 0; lane < tile_side; ++lane) any |= marks[lane];
  return any >> 31 == 0;
}

// One block that memory holds `count` lines of `depth` numbers of, or that has numbers without parts: from a
// copy, with zeros in place of what is missing.
bool split_copy(Side side, Lines from, std::int64_t count, std::int64_t depth, std::uint32_t* to) noexcept {
  alignas(64) float copy[block_lines * block_depth] = {};
  const std::int64_t rows = from.along ? count : depth;
  const std::int64_t columns = from.along ? depth : count;
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(from.x + i * from.ld, columns, copy + i * block_depth);
  const Lines padded{copy, block_depth, from.along};
  if (split_block(side, padded, copy, to)) return true;
  for (float& x : copy) x = has_parts(x) ? x : 0;
  split_block(side, padded, copy, to);
  return false;
}

// C [rows, 32].
template <bool keep>
RILL_KERNEL void add_rows(std::int64_t rows, const float* sums, float beta, float* c,
                          std::int64_t ldc) noexcept {
  for (std::int64_t i = 0; i < rows; ++i) {
#pragma omp simd
    for (std::int64_t j = 0; j < block_lines; ++j) {
      const float sum = sums[i * block_lines + j];
      c[i * ldc + j] = keep ? sum + beta * c[i * ldc + j] : sum;
    }
  }
}

template <bool without_parts_alone>
RILL_KERNEL void scale_rows(std::int64_t n, float x, const float* y, float* c) noexcept {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) {
    if (!without_parts_alone || !(std::fabs(y[j]) < least_without_parts)) c[j] += x * y[j];
  }
}

}  // namespace

bool split(Side side, Lines from, std::int64_t count, std::int64_t depth, std::uint32_t* to,
           std::int64_t stride) noexcept {
  bool all_have_parts = true;
  for (std::int64_t i = 0; i < count; i += block_lines) {
    std::uint32_t* block = to + i / block_lines * stride;
    for (std::int64_t p = 0; p < depth; p += block_depth) {
      const std::int64_t lines = std::min(block_lines, count - i);
      const std::int64_t numbers = std::min(block_depth, depth - p);
      const Lines part = from.from(i, p);
      const bool is_whole = lines == block_lines && numbers == block_depth;
      const float* const next = p + block_depth < depth ? from.at(i, p + block_depth) : from.at(i + lines, 0);
      if (!is_whole || !split_block(side, part, next, block))
        all_have_parts = split_copy(side, part, lines, numbers, block) && all_have_parts;
      block += block_words;
    }
  }
  return all_have_parts;
}

void join(const std::uint32_t* right, std::int64_t stride, std::int64_t count, std::int64_t p,
          float* to) noexcept {
  for (std::int64_t j = 0; j < count; ++j) {
    const std::uint32_t* const block = right + j / block_lines * stride + p / block_depth * block_words;
    const std::int64_t column = j % block_lines;
    const std::int64_t at =
        column / tile_side * tile_words + p % block_depth / 2 * tile_side + column % tile_side;
    to[j] = 0;
    for (std::int64_t part = parts - 1; part >= 0; --part) {
      const std::uint32_t pair = block[2 * part * tile_words + at];
      to[j] += std::bit_cast<float>(p % 2 == 0 ? pair << 16 : pair & 0xffff0000U);
    }
  }
}

void add_sums(std::int64_t rows, std::int64_t columns, const float* sums, float beta, float* c,
              std::int64_t ldc) noexcept {
  if (columns != block_lines) return put_edge(rows, columns, sums, block_lines, 1, beta, c, ldc);
  beta == 0 ? add_rows<false>(rows, sums, beta, c, ldc) : add_rows<true>(rows, sums, beta, c, ldc);
}

void add_scaled(std::int64_t n, float x, const float* y, bool without_parts_alone, float* c) noexcept {
  without_parts_alone ? scale_rows<true>(n, x, y, c) : scale_rows<false>(n, x, y, c);
}

}  // namespace rill::kernels::amx
