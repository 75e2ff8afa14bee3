/// The product of float32 matrices by their parts, on whatever has tiles: the processor (amx.cpp), or a test.
/// Internal to core/kernels.
///
/// Tiles says how. A value of it, while it lives, gives the calling thread 8 tiles of 16 rows of 64 bytes:
///   Tiles::load<tile>(from, bytes)        rows that are so many bytes apart
///   Tiles::store<tile>(to, bytes)
///   Tiles::zero<tile>()
///   Tiles::multiply_add<to, left, right>()
///                                         to [i, j] += Σ_p left [i, p] right [p, j] in float32, over the 32
///                                         numbers of bfloat16 in a row of `left` and a column of `right`
#pragma once

#include <algorithm>
#include <cstdint>

#include <rill/core/kernels/amx_parts.h>
#include <rill/core/kernels/simd.h>

namespace rill::kernels::amx {

/// How a product is cut. A block of B, so many columns of a depth, stays in the second-level cache while rows
/// of A pass: deep, since a block of C comes and goes once a depth.
struct Cut {
  std::int64_t depth, columns, rows;
};
constexpr Cut from_memory{.depth = 512, .columns = 384, .rows = 128};
/// Beside a B that is packed: the more rows, the less often it comes from memory.
constexpr Cut from_packed{.depth = 512, .columns = 0, .rows = 64};

constexpr std::int64_t blocks_of(std::int64_t size, std::int64_t side) noexcept {
  return (size + side - 1) / side;
}

/// Words of the blocks of 32 lines of a depth.
constexpr std::int64_t lines_words(std::int64_t depth) noexcept {
  return blocks_of(depth, block_depth) * block_words;
}

/// k is cut into parts of equal depth but the last, by k alone.
constexpr std::int64_t depth_of(std::int64_t k, std::int64_t most) noexcept {
  const std::int64_t shares = std::max<std::int64_t>(blocks_of(k, most), 1);
  return std::max<std::int64_t>(blocks_of(blocks_of(k, shares), block_depth), 1) * block_depth;
}

/// Sums [16 · high, 32] = left · right: `count` blocks of each side, one after the other. Tiles 0 to 3 are
/// the sums, 4 and 5 of the left side, 6 and 7 of the right one.
template <class Tiles, int high>
void multiply_blocks(std::int64_t count, const std::uint32_t* left, const std::uint32_t* right,
                     float* sums) noexcept {
  static_assert(high == 1 || high == 2);
  constexpr std::int64_t row = tile_side * static_cast<std::int64_t>(sizeof(std::uint32_t));
  constexpr std::int64_t sums_row = 2 * row;
  const auto load_left = [&](int part) RILL_INLINE_LAMBDA {
    Tiles::template load<4>(left + 2 * part * tile_words, row);
    if constexpr (high == 2) Tiles::template load<5>(left + (2 * part + 1) * tile_words, row);
  };
  const auto load_right = [&](int part) RILL_INLINE_LAMBDA {
    Tiles::template load<6>(right + 2 * part * tile_words, row);
    Tiles::template load<7>(right + (2 * part + 1) * tile_words, row);
  };
  const auto multiply = []() RILL_INLINE_LAMBDA {
    Tiles::template multiply_add<0, 4, 6>();
    Tiles::template multiply_add<1, 4, 7>();
    if constexpr (high == 2) {
      Tiles::template multiply_add<2, 5, 6>();
      Tiles::template multiply_add<3, 5, 7>();
    }
  };
  Tiles::template zero<0>();
  Tiles::template zero<1>();
  Tiles::template zero<2>();
  Tiles::template zero<3>();
  for (std::int64_t i = 0; i < count; ++i) {
    load_left(0), load_right(0), multiply();
    load_right(1), multiply();
    load_right(2), multiply();
    load_left(1), load_right(1), multiply();
    load_right(0), multiply();
    load_left(2), multiply();
    left += block_words;
    right += block_words;
  }
  Tiles::template store<0>(sums, sums_row);
  Tiles::template store<1>(sums + tile_side, sums_row);
  if constexpr (high == 2) {
    Tiles::template store<2>(sums + tile_side * block_lines, sums_row);
    Tiles::template store<3>(sums + tile_side * block_lines + tile_side, sums_row);
  }
}

/// Both sides of a product over a depth, in blocks.
struct Blocks {
  std::int64_t m, n, k;
  const std::uint32_t* left;
  std::int64_t left_stride;
  const std::uint32_t* right;
  std::int64_t right_stride;
};

/// Has the lines of C under the next tiles on their way while those at row i, column j are computed.
inline void prefetch_next(const Blocks& b, std::int64_t i, std::int64_t j, const float* c,
                          std::int64_t ldc) noexcept {
  i += block_lines;
  if (i >= b.m) {
    i = 0;
    j += block_lines;
  }
  if (j >= b.n) return;
  for (const std::int64_t end = std::min(i + block_lines, b.m); i < end; ++i) {
    __builtin_prefetch(c + i * ldc + j, 1);
    __builtin_prefetch(c + i * ldc + j + tile_side, 1);
  }
}

/// C [m, n] = left · right + beta C. Each depth is summed up apart and added to C once, which is more precise
/// than to go on from C.
template <class Tiles>
void multiply(const Blocks& b, float beta, float* c, std::int64_t ldc) noexcept {
  alignas(64) float sums[block_lines * block_lines];
  const std::int64_t count = blocks_of(b.k, block_depth);
  for (std::int64_t j = 0; j < b.n; j += block_lines) {
    const std::uint32_t* const right = b.right + j / block_lines * b.right_stride;
    const std::int64_t columns = std::min(block_lines, b.n - j);
    for (std::int64_t i = 0; i < b.m; i += block_lines) {
      const std::uint32_t* const left = b.left + i / block_lines * b.left_stride;
      const std::int64_t rows = std::min(block_lines, b.m - i);
      prefetch_next(b, i, j, c, ldc);
      const auto run = rows > tile_side ? multiply_blocks<Tiles, 2> : multiply_blocks<Tiles, 1>;
      run(count, left, right, sums);
      add_sums(rows, columns, sums, beta, c + i * ldc + j, ldc);
    }
  }
}

/// C [m, n] += the products with a number that has no parts, which stands as 0 in the blocks. `right(p, j)`
/// is B.
template <class Right>
void add_without_parts(std::int64_t m, std::int64_t n, std::int64_t k, Lines a, const Right& right, float* c,
                       std::int64_t ldc) noexcept {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t p = 0; p < k; ++p) {
      const float x = *a.at(i, p);
      for (std::int64_t j = 0; j < n; ++j) {
        const float y = right(p, j);
        if (!has_parts(x) || !has_parts(y)) c[i * ldc + j] += x * y;
      }
    }
  }
}

/// Words of the workspace of `packed_product` and `product`.
constexpr std::int64_t workspace_words(const Cut& cut) noexcept {
  return (cut.columns + cut.rows) / block_lines * lines_words(cut.depth);
}

/// amx_packed_gemm
template <class Tiles>
void packed_product(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
                    const std::uint32_t* packed, float beta, float* c, std::int64_t ldc,
                    std::uint32_t* left) noexcept {
  constexpr Cut cut = from_packed;
  constexpr std::int64_t left_stride = lines_words(cut.depth);
  const Tiles tiles;
  const std::int64_t step = depth_of(k, cut.depth), right_stride = lines_words(k);
  for (std::int64_t i = 0; i < m; i += cut.rows) {
    const std::int64_t rows = std::min(cut.rows, m - i);
    float* const to = c + i * ldc;
    for (std::int64_t p = 0; p == 0 || p < k; p += step) {
      const std::int64_t depth = std::min(step, k - p);
      const std::uint32_t* const right = packed + p / block_depth * block_words;
      const Lines from{a + i * lda + p, lda, true};
      const bool all_have_parts = split(Side::left, from, rows, depth, left, left_stride);
      multiply<Tiles>({rows, n, depth, left, left_stride, right, right_stride}, p == 0 ? beta : 1, to, ldc);
      if (all_have_parts) continue;
      const auto b = [&](std::int64_t q, std::int64_t j) { return whole(right, right_stride, j, q); };
      add_without_parts(rows, n, depth, from, b, to, ldc);
    }
  }
}

/// amx_gemm, with A and B as lines of k numbers.
template <class Tiles>
void product(std::int64_t m, std::int64_t n, std::int64_t k, Lines a, Lines b, float beta, float* c,
             std::int64_t ldc, std::uint32_t* workspace) noexcept {
  constexpr Cut cut = from_memory;
  constexpr std::int64_t stride = lines_words(cut.depth);
  std::uint32_t* const right = workspace;
  std::uint32_t* const left = workspace + cut.columns / block_lines * stride;
  const Tiles tiles;
  const std::int64_t step = depth_of(k, cut.depth);
  for (std::int64_t j = 0; j < n; j += cut.columns) {
    const std::int64_t columns = std::min(cut.columns, n - j);
    for (std::int64_t p = 0; p == 0 || p < k; p += step) {
      const std::int64_t depth = std::min(step, k - p);
      const Lines from_b = b.from(j, p);
      const bool all_of_b = split(Side::right, from_b, columns, depth, right, stride);
      for (std::int64_t i = 0; i < m; i += cut.rows) {
        const std::int64_t rows = std::min(cut.rows, m - i);
        const Lines from_a = a.from(i, p);
        float* const to = c + i * ldc + j;
        const bool all_of_a = split(Side::left, from_a, rows, depth, left, stride);
        multiply<Tiles>({rows, columns, depth, left, stride, right, stride}, p == 0 ? beta : 1, to, ldc);
        if (all_of_a && all_of_b) continue;
        const auto number = [&](std::int64_t q, std::int64_t column) { return *from_b.at(column, q); };
        add_without_parts(rows, columns, depth, from_a, number, to, ldc);
      }
    }
  }
}

}  // namespace rill::kernels::amx
