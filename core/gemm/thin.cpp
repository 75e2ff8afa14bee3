#include <rill/core/gemm/thin.h>

#include <algorithm>

#include <rill/core/gemm/tile.h>

namespace rill::kernels {
namespace {

// A block of B, depth by columns, comes from memory for the first tile and from the L2 cache for the others;
// each of its rows is on a separate page, so the depth must not exceed the TLB.
constexpr std::int64_t most_depth = 128;
constexpr std::int64_t column_block = 768;

// Bytes of A transposed at a time, which should fit in the L1 cache.
constexpr std::int64_t most_transposed = 32768;

// The tiles of a level, by number of rows.
template <class T>
struct ThinKernels {
  static constexpr int tallest = 12;
  static constexpr int most_lanes = 64 / sizeof(T);
  std::int64_t lanes;
  int most_rows;
  int across[tallest + 1];  // vectors of a wide tile
  TileKernel<T> wide[tallest + 1];
  TileKernel<T> narrow[tallest + 1];       // one vector
  TileKernel<T> from_memory[tallest + 1];  // one vector, with A from memory
};

template <class T>
struct MakeThinKernels {
  template <class Level, int rows = 1>
  static constexpr void add_tiles(ThinKernels<T>& f) {
    constexpr int across = std::min(Level::accumulators / rows, 4);
    f.across[rows] = across;
    f.wide[rows] = Level::template run<T, rows, across, Stored::by_rows, Stored::far>;
    f.narrow[rows] = Level::template run<T, rows, 1, Stored::by_rows, Stored::far>;
    f.from_memory[rows] = Level::template run<T, rows, 1, Stored::far, Stored::by_rows>;
    if constexpr (rows < Level::accumulators / 2) add_tiles<Level, rows + 1>(f);
  }

  template <class Level>
  static constexpr ThinKernels<T> of() {
    using L = Layout<T, Level>;
    static_assert(Level::accumulators / 2 <= ThinKernels<T>::tallest &&
                  L::lanes <= ThinKernels<T>::most_lanes);
    ThinKernels<T> f{};
    f.lanes = L::lanes;
    f.most_rows = Level::accumulators / 2;
    add_tiles<Level>(f);
    return f;
  }
};

// The last columns, fewer than the lanes of a vector; no element beyond them may be accessed.
template <class T>
void last_columns(const ThinKernels<T>& f, MatrixView<const T> a, MatrixView<const T> b, T beta,
                  MatrixView<T> c) noexcept {
  T right[most_depth * ThinKernels<T>::most_lanes];
  T result[ThinKernels<T>::tallest * ThinKernels<T>::most_lanes];
  for (std::int64_t p = 0; p < b.rows; ++p) {
    std::copy_n(b.at(p, 0), b.columns, right + p * f.lanes);
    std::fill(right + p * f.lanes + b.columns, right + (p + 1) * f.lanes, T(0));
  }
  f.narrow[c.rows](b.rows, {a.data, a.ld}, {right, f.lanes}, T(0), result, f.lanes);
  put_edge(result, f.lanes, 1, beta, c);
}

// B is read by rows, a block of it for all rows of A.
template <class T>
void multiply_by_rows(const ThinKernels<T>& f, MatrixView<const T> a, MatrixView<const T> b, T beta,
                      MatrixView<T> c) noexcept {
  const RowTiles tiles(c.rows, f.most_rows);
  const std::int64_t k = a.columns, n = c.columns;
  for (std::int64_t block = 0; block < n; block += column_block) {
    const std::int64_t end = std::min(block + column_block, n);
    for (std::int64_t p = 0; p == 0 || p < k; p += most_depth) {
      const std::int64_t depth = std::min(most_depth, k - p);
      const T keep = p == 0 ? beta : T(1);
      for (std::int64_t t = 0; t < tiles.count; ++t) {
        const std::int64_t i = tiles.first(t), rows = tiles.rows(t);
        const std::int64_t wide = f.across[rows] * f.lanes;
        const Operand<T> left{a.at(i, p), a.ld};
        std::int64_t j = block;
        for (; j + wide <= end; j += wide)
          f.wide[rows](depth, left, {b.at(p, j), b.ld}, keep, c.at(i, j), c.ld);
        for (; j + f.lanes <= end; j += f.lanes)
          f.narrow[rows](depth, left, {b.at(p, j), b.ld}, keep, c.at(i, j), c.ld);
        if (j < end) {
          last_columns(f, a.block(i, p, rows, depth), b.block(p, j, depth, end - j), keep,
                       c.block(i, j, rows, end - j));
        }
      }
    }
  }
}

// C^T = B^T A^T: rows of the stored B^T times vectors across the rows of A, which is transposed for that; C
// is computed transposed.
template <class T>
void multiply_by_columns(const ThinKernels<T>& f, MatrixView<const T> a, MatrixView<const T> b, T beta,
                         MatrixView<T> c) noexcept {
  const RowTiles tiles(c.columns, f.most_rows);
  constexpr std::int64_t elements = most_transposed / sizeof(T);
  T transposed[elements];
  T result[ThinKernels<T>::tallest * ThinKernels<T>::most_lanes];
  const std::int64_t m = c.rows, k = a.columns;
  if (m == 0) return;
  const std::int64_t groups = (m + f.lanes - 1) / f.lanes;
  const std::int64_t most = elements / (groups * f.lanes);
  for (std::int64_t p = 0; p == 0 || p < k; p += most) {
    const std::int64_t depth = std::min(most, k - p);
    for (std::int64_t i = 0; i < groups * f.lanes; ++i) {
      T* const to = transposed + i / f.lanes * depth * f.lanes + i % f.lanes;
      for (std::int64_t q = 0; q < depth; ++q) to[q * f.lanes] = i < m ? *a.at(i, p + q) : T(0);
    }
    for (std::int64_t t = 0; t < tiles.count; ++t) {
      const std::int64_t j = tiles.first(t), columns = tiles.rows(t);
      for (std::int64_t g = 0; g < groups; ++g) {
        const std::int64_t i = g * f.lanes;
        const T* const right = transposed + i * depth;
        f.from_memory[columns](depth, {b.at(p, j), b.ld}, {right, f.lanes}, T(0), result, f.lanes);
        put_edge(result, 1, f.lanes, p == 0 ? beta : T(1), c.block(i, j, std::min(f.lanes, m - i), columns));
      }
    }
  }
}

}  // namespace

template <class T>
void thin_gemm(MatrixView<const T> a, MatrixView<const T> b, T beta, MatrixView<T> c) noexcept {
  const auto multiply = b.transposed ? multiply_by_columns<T> : multiply_by_rows<T>;
  multiply(for_this_processor<MakeThinKernels<T>>(), a, b, beta, c);
}

template void thin_gemm(MatrixView<const float>, MatrixView<const float>, float, MatrixView<float>) noexcept;
template void thin_gemm(MatrixView<const double>, MatrixView<const double>, double,
                        MatrixView<double>) noexcept;

}  // namespace rill::kernels
