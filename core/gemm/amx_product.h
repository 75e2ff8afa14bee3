/// The product of split float32 matrices, for any implementation of tiles: the processor (amx.cpp) or an
/// emulation in tests. Internal to core/gemm.
///
/// A Unit provides the calling thread with 8 tiles of 16 rows of 64 bytes during its lifetime:
///   Unit::load<tile>(from, bytes)        rows that are so many bytes apart
///   Unit::store<tile>(to, bytes)
///   Unit::zero<tile>()
///   Unit::multiply_add<to, left, right>()
///                                         to [i, j] += Σ_p left [i, p] right [p, j] in float32, over the 32
///                                         elements of bfloat16 in a row of `left` and a column of `right`
#pragma once

#include <algorithm>
#include <cstdint>

#include <rill/core/gemm/amx_split.h>
#include <rill/core/kernels/simd.h>

namespace rill::kernels::amx {

/// Block sizes of a product. A block of B, depth by columns, stays in the L2 cache while rows of A pass.
struct BlockSize {
  std::int64_t columns, rows;
};
constexpr BlockSize from_memory{.columns = 384, .rows = 128};
/// For a packed B: the more rows, the less often it is read from memory.
constexpr BlockSize from_packed{.columns = 0, .rows = 64};

/// The longest sum accumulated in a tile before it is added to C; longer sums are less accurate.
constexpr std::int64_t longest_sum = 256;
/// The depth of a block, two such sums: the deeper, the less often C is read and written.
constexpr std::int64_t most_depth = 2 * longest_sum;

constexpr std::int64_t blocks_of(std::int64_t size, std::int64_t side) noexcept {
  return (size + side - 1) / side;
}

/// Words of the blocks of 32 lines of a depth.
constexpr std::int64_t lines_words(std::int64_t depth) noexcept {
  return blocks_of(depth, block_depth) * block_words;
}

/// The length of a sum in a tile, a function of k alone; equal for all sums but the last.
constexpr std::int64_t sum_length(std::int64_t k) noexcept {
  const std::int64_t sums = std::max<std::int64_t>(blocks_of(k, longest_sum), 1);
  return std::max<std::int64_t>(blocks_of(blocks_of(k, sums), block_depth), 1) * block_depth;
}

/// Sums [16 · high, 32] = left · right: `count` consecutive blocks of each operand. Tiles 0 to 3 are the
/// sums, 4 and 5 the left operand, 6 and 7 the right one.
template <class Unit, int high>
void multiply_blocks(std::int64_t count, const std::uint32_t* left, const std::uint32_t* right,
                     float* sums) noexcept {
  static_assert(high == 1 || high == 2);
  constexpr std::int64_t row = tile_side * static_cast<std::int64_t>(sizeof(std::uint32_t));
  constexpr std::int64_t sums_row = 2 * row;
  const auto load_left = [&](int term) RILL_INLINE_LAMBDA {
    Unit::template load<4>(left + 2 * term * tile_words, row);
    if constexpr (high == 2) Unit::template load<5>(left + (2 * term + 1) * tile_words, row);
  };
  const auto load_right = [&](int term) RILL_INLINE_LAMBDA {
    Unit::template load<6>(right + 2 * term * tile_words, row);
    Unit::template load<7>(right + (2 * term + 1) * tile_words, row);
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

/// Both operands of a product over a depth, in blocks.
struct SplitOperands {
  std::int64_t k, sum_length;
  const std::uint32_t* left;
  std::int64_t left_stride;
  const std::uint32_t* right;
  std::int64_t right_stride;
};

/// Prefetches the lines of C under the next tiles while those at row i, column j are computed.
inline void prefetch_next(std::int64_t i, std::int64_t j, MatrixView<float> c) noexcept {
  i += block_lines;
  if (i >= c.rows) {
    i = 0;
    j += block_lines;
  }
  if (j >= c.columns) return;
  for (const std::int64_t end = std::min(i + block_lines, c.rows); i < end; ++i) {
    __builtin_prefetch(c.at(i, j), 1);
    __builtin_prefetch(c.at(i, j + tile_side), 1);
  }
}

/// C = left · right + beta C.
template <class Unit>
void multiply(const SplitOperands& operands, float beta, MatrixView<float> c) noexcept {
  alignas(64) float sums[block_lines * block_lines];
  const std::int64_t all = blocks_of(operands.k, block_depth);
  const std::int64_t step = operands.sum_length / block_depth;
  for (std::int64_t j = 0; j < c.columns; j += block_lines) {
    const std::uint32_t* const right = operands.right + j / block_lines * operands.right_stride;
    const std::int64_t columns = std::min(block_lines, c.columns - j);
    for (std::int64_t i = 0; i < c.rows; i += block_lines) {
      const std::uint32_t* const left = operands.left + i / block_lines * operands.left_stride;
      const std::int64_t rows = std::min(block_lines, c.rows - i);
      const auto run = rows > tile_side ? multiply_blocks<Unit, 2> : multiply_blocks<Unit, 1>;
      prefetch_next(i, j, c);
      for (std::int64_t p = 0; p == 0 || p < all; p += step) {
        run(std::min(step, all - p), left + p * block_words, right + p * block_words, sums);
        add_sums(sums, p == 0 ? beta : 1, c.block(i, j, rows, columns));
      }
    }
  }
}

/// C += the products with an unsplittable element, which is 0 in the blocks. `right(p, j, count, to)` returns
/// `count` elements of row p of B from column j on; `right_has` tells whether B has an unsplittable element.
template <class Right>
void add_unsplittable(MatrixView<const float> a, bool right_has, const Right& right,
                      MatrixView<float> c) noexcept {
  constexpr std::int64_t most = 512;
  float row[most];
  for (std::int64_t j = 0; j < c.columns; j += most) {
    const std::int64_t count = std::min(most, c.columns - j);
    for (std::int64_t p = 0; p < a.columns; ++p) {
      const auto needed = [&](std::int64_t i) { return right_has || !is_splittable(*a.at(i, p)); };
      std::int64_t i = 0;
      while (i < c.rows && !needed(i)) ++i;
      if (i == c.rows) continue;
      right(p, j, count, row);
      const bool in_row = right_has && !std::all_of(row, row + count, is_splittable);
      for (; i < c.rows; ++i) {
        const float x = *a.at(i, p);
        if (in_row || !is_splittable(x)) add_scaled(count, x, row, is_splittable(x), c.at(i, j));
      }
    }
  }
}

/// Words of the workspace of `packed_product` and `product`.
constexpr std::int64_t workspace_words(const BlockSize& size) noexcept {
  return (size.columns + size.rows) / block_lines * lines_words(most_depth);
}

/// amx_packed_gemm
template <class Unit>
void packed_product(MatrixView<const float> a, const std::uint32_t* packed, float beta, MatrixView<float> c,
                    std::uint32_t* left) noexcept {
  constexpr BlockSize size = from_packed;
  constexpr std::int64_t left_stride = lines_words(most_depth);
  const Unit unit;
  const std::int64_t k = a.columns, length = sum_length(k), step = 2 * length, right_stride = lines_words(k);
  for (std::int64_t i = 0; i < c.rows; i += size.rows) {
    const MatrixView<float> to = c.slice_rows(i, std::min(i + size.rows, c.rows));
    for (std::int64_t p = 0; p == 0 || p < k; p += step) {
      const MatrixView<const float> from = a.block(i, p, to.rows, std::min(step, k - p));
      const std::uint32_t* const right = packed + p / block_depth * block_words;
      const bool all_splittable = split(Role::left, from, left, left_stride);
      multiply<Unit>({from.columns, length, left, left_stride, right, right_stride}, p == 0 ? beta : 1, to);
      if (all_splittable) continue;
      const auto b = [&](std::int64_t q, std::int64_t j, std::int64_t count, float* row) {
        unsplit_row(right + j / block_lines * right_stride, right_stride, count, q, row);
      };
      add_unsplittable(from, false, b, to);
    }
  }
}

/// amx_gemm
template <class Unit>
void product(MatrixView<const float> a, MatrixView<const float> b, float beta, MatrixView<float> c,
             std::uint32_t* workspace) noexcept {
  constexpr BlockSize size = from_memory;
  constexpr std::int64_t stride = lines_words(most_depth);
  std::uint32_t* const right = workspace;
  std::uint32_t* const left = workspace + size.columns / block_lines * stride;
  const Unit unit;
  const std::int64_t k = a.columns, length = sum_length(k), step = 2 * length;
  for (std::int64_t j = 0; j < c.columns; j += size.columns) {
    const std::int64_t columns = std::min(size.columns, c.columns - j);
    for (std::int64_t p = 0; p == 0 || p < k; p += step) {
      const MatrixView<const float> from_b = b.block(p, j, std::min(step, k - p), columns);
      const bool all_of_b = split(Role::right, from_b.t(), right, stride);
      for (std::int64_t i = 0; i < c.rows; i += size.rows) {
        const MatrixView<float> to = c.block(i, j, std::min(size.rows, c.rows - i), columns);
        const MatrixView<const float> from_a = a.block(i, p, to.rows, from_b.rows);
        const bool all_of_a = split(Role::left, from_a, left, stride);
        multiply<Unit>({from_b.rows, length, left, stride, right, stride}, p == 0 ? beta : 1, to);
        if (all_of_a && all_of_b) continue;
        const auto elements = [&](std::int64_t q, std::int64_t column, std::int64_t count, float* row) {
          for (std::int64_t l = 0; l < count; ++l) row[l] = *from_b.at(q, column + l);
        };
        add_unsplittable(from_a, !all_of_b, elements, to);
      }
    }
  }
}

}  // namespace rill::kernels::amx
