/// The product of float32 matrices by their parts, on whatever has tiles: the processor (amx.cpp), or a test.
/// Internal to core/kernels.
///
/// Unit says how. A value of it, while it lives, gives the calling thread 8 tiles of 16 rows of 64 bytes:
///   Unit::load<tile>(from, bytes)        rows that are so many bytes apart
///   Unit::store<tile>(to, bytes)
///   Unit::zero<tile>()
///   Unit::multiply_add<to, left, right>()
///                                         to [i, j] += Σ_p left [i, p] right [p, j] in float32, over the 32
///                                         numbers of bfloat16 in a row of `left` and a column of `right`
#pragma once

#include <algorithm>
#include <cstdint>

#include <rill/core/gemm/amx_parts.h>
#include <rill/core/kernels/simd.h>

namespace rill::kernels::amx {

/// How a product is cut. A block of B, so many columns of a depth, stays in the second-level cache while rows
/// of A pass.
struct Cut {
  std::int64_t columns, rows;
};
constexpr Cut from_memory{.columns = 384, .rows = 128};
/// Beside a B that is packed: the more rows, the less often it comes from memory.
constexpr Cut from_packed{.columns = 0, .rows = 64};

/// So many numbers at most are summed up in a tile, then added to C: longer sums are less precise.
constexpr std::int64_t most_summed = 256;
/// Depths of two such sums: the deeper, the less often C comes and goes.
constexpr std::int64_t most_depth = 2 * most_summed;

constexpr std::int64_t blocks_of(std::int64_t size, std::int64_t side) noexcept {
  return (size + side - 1) / side;
}

/// Words of the blocks of 32 lines of a depth.
constexpr std::int64_t lines_words(std::int64_t depth) noexcept {
  return blocks_of(depth, block_depth) * block_words;
}

/// How many numbers of k are summed up at a time: equal shares but the last, by k alone.
constexpr std::int64_t summed_of(std::int64_t k) noexcept {
  const std::int64_t shares = std::max<std::int64_t>(blocks_of(k, most_summed), 1);
  return std::max<std::int64_t>(blocks_of(blocks_of(k, shares), block_depth), 1) * block_depth;
}

/// Sums [16 · high, 32] = left · right: `count` blocks of each side, one after the other. Tiles 0 to 3 are
/// the sums, 4 and 5 of the left side, 6 and 7 of the right one.
template <class Unit, int high>
void multiply_blocks(std::int64_t count, const std::uint32_t* left, const std::uint32_t* right,
                     float* sums) noexcept {
  static_assert(high == 1 || high == 2);
  constexpr std::int64_t row = tile_side * static_cast<std::int64_t>(sizeof(std::uint32_t));
  constexpr std::int64_t sums_row = 2 * row;
  const auto load_left = [&](int part) RILL_INLINE_LAMBDA {
    Unit::template load<4>(left + 2 * part * tile_words, row);
    if constexpr (high == 2) Unit::template load<5>(left + (2 * part + 1) * tile_words, row);
  };
  const auto load_right = [&](int part) RILL_INLINE_LAMBDA {
    Unit::template load<6>(right + 2 * part * tile_words, row);
    Unit::template load<7>(right + (2 * part + 1) * tile_words, row);
  };
  const auto multiply = []() RILL_INLINE_LAMBDA {
    Unit::template multiply_add<0, 4, 6>();
    Unit::template multiply_add<1, 4, 7>();
    if constexpr (high == 2) {
      Unit::template multiply_add<2, 5, 6>();
      Unit::template multiply_add<3, 5, 7>();
    }
  };
  Unit::template zero<0>();
  Unit::template zero<1>();
  Unit::template zero<2>();
  Unit::template zero<3>();
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
  Unit::template store<0>(sums, sums_row);
  Unit::template store<1>(sums + tile_side, sums_row);
  if constexpr (high == 2) {
    Unit::template store<2>(sums + tile_side * block_lines, sums_row);
    Unit::template store<3>(sums + tile_side * block_lines + tile_side, sums_row);
  }
}

/// Both sides of a product over a depth, in blocks; `summed` numbers are summed up at a time.
struct Blocks {
  std::int64_t m, n, k, summed;
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

/// C [m, n] = left · right + beta C.
template <class Unit>
void multiply(const Blocks& b, float beta, float* c, std::int64_t ldc) noexcept {
  alignas(64) float sums[block_lines * block_lines];
  const std::int64_t all = blocks_of(b.k, block_depth);
  const std::int64_t step = b.summed / block_depth;
  for (std::int64_t j = 0; j < b.n; j += block_lines) {
    const std::uint32_t* const right = b.right + j / block_lines * b.right_stride;
    const std::int64_t columns = std::min(block_lines, b.n - j);
    for (std::int64_t i = 0; i < b.m; i += block_lines) {
      const std::uint32_t* const left = b.left + i / block_lines * b.left_stride;
      const std::int64_t rows = std::min(block_lines, b.m - i);
      const auto run = rows > tile_side ? multiply_blocks<Unit, 2> : multiply_blocks<Unit, 1>;
      prefetch_next(b, i, j, c, ldc);
      for (std::int64_t p = 0; p == 0 || p < all; p += step) {
        run(std::min(step, all - p), left + p * block_words, right + p * block_words, sums);
        add_sums(rows, columns, sums, p == 0 ? beta : 1, c + i * ldc + j, ldc);
      }
    }
  }
}

/// C [m, n] += the products with a number that has no parts, which stands as 0 in the blocks.
/// `right(p, j, count, to)` gives number p of `count` columns of B from column j on; `right_has` says whether
/// one of them has no parts.
template <class Right>
void add_without_parts(std::int64_t m, std::int64_t n, std::int64_t k, Lines a, bool right_has,
                       const Right& right, float* c, std::int64_t ldc) noexcept {
  constexpr std::int64_t most = 512;
  float row[most];
  for (std::int64_t j = 0; j < n; j += most) {
    const std::int64_t count = std::min(most, n - j);
    for (std::int64_t p = 0; p < k; ++p) {
      const auto needed = [&](std::int64_t i) { return right_has || !has_parts(*a.at(i, p)); };
      std::int64_t i = 0;
      while (i < m && !needed(i)) ++i;
      if (i == m) continue;
      right(p, j, count, row);
      const bool in_row = right_has && !std::all_of(row, row + count, has_parts);
      for (; i < m; ++i) {
        const float x = *a.at(i, p);
        if (in_row || !has_parts(x)) add_scaled(count, x, row, has_parts(x), c + i * ldc + j);
      }
    }
  }
}

/// Words of the workspace of `packed_product` and `product`.
constexpr std::int64_t workspace_words(const Cut& cut) noexcept {
  return (cut.columns + cut.rows) / block_lines * lines_words(most_depth);
}

/// amx_packed_gemm
template <class Unit>
void packed_product(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
                    const std::uint32_t* packed, float beta, float* c, std::int64_t ldc,
                    std::uint32_t* left) noexcept {
  constexpr Cut cut = from_packed;
  constexpr std::int64_t left_stride = lines_words(most_depth);
  const Unit unit;
  const std::int64_t summed = summed_of(k), step = 2 * summed, right_stride = lines_words(k);
  for (std::int64_t i = 0; i < m; i += cut.rows) {
    const std::int64_t rows = std::min(cut.rows, m - i);
    float* const to = c + i * ldc;
    for (std::int64_t p = 0; p == 0 || p < k; p += step) {
      const std::int64_t depth = std::min(step, k - p);
      const std::uint32_t* const right = packed + p / block_depth * block_words;
      const Lines from{a + i * lda + p, lda, true};
      const bool all_have_parts = split(Side::left, from, rows, depth, left, left_stride);
      multiply<Unit>({rows, n, depth, summed, left, left_stride, right, right_stride}, p == 0 ? beta : 1, to,
                     ldc);
      if (all_have_parts) continue;
      const auto b = [&](std::int64_t q, std::int64_t j, std::int64_t count, float* numbers) {
        join(right + j / block_lines * right_stride, right_stride, count, q, numbers);
      };
      add_without_parts(rows, n, depth, from, false, b, to, ldc);
    }
  }
}

/// amx_gemm, with A and B as lines of k numbers.
template <class Unit>
void product(std::int64_t m, std::int64_t n, std::int64_t k, Lines a, Lines b, float beta, float* c,
             std::int64_t ldc, std::uint32_t* workspace) noexcept {
  constexpr Cut cut = from_memory;
  constexpr std::int64_t stride = lines_words(most_depth);
  std::uint32_t* const right = workspace;
  std::uint32_t* const left = workspace + cut.columns / block_lines * stride;
  const Unit unit;
  const std::int64_t summed = summed_of(k), step = 2 * summed;
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
        multiply<Unit>({rows, columns, depth, summed, left, stride, right, stride}, p == 0 ? beta : 1, to,
                       ldc);
        if (all_of_a && all_of_b) continue;
        const auto numbers = [&](std::int64_t q, std::int64_t column, std::int64_t count, float* row) {
          for (std::int64_t l = 0; l < count; ++l) row[l] = *from_b.at(column + l, q);
        };
        add_without_parts(rows, columns, depth, from_a, !all_of_b, numbers, to, ldc);
      }
    }
  }
}

}  // namespace rill::kernels::amx
