#include <rill/core/gemm/blocked.h>

#include <algorithm>

#include <rill/core/gemm/tile.h>

namespace rill::kernels {
namespace {

// A packed B consists of panels of k rows and a fixed number of columns, the last one padded with zeros.

// A block of B, depth by columns, stays in the L2 cache; tiles of A pass through L1.
constexpr std::int64_t row_block = 96;
constexpr std::int64_t column_block = 768;  // a multiple of every panel's width
constexpr std::int64_t most_depth = 256;

// The tiles of a level, by the layout of A, the number of vectors (within one panel) and of rows. Tiles of
// several panels read A by rows.
template <class T>
struct PanelKernels {
  static constexpr int tallest = 8;
  static constexpr int widest = 3;
  static constexpr int most_lanes = 64 / sizeof(T);
  static constexpr int ways = 3;  // by rows, packed, packing
  std::int64_t lanes;
  std::int64_t width;
  int most_rows;
  int panels[tallest + 1];  // per tile, by its number of rows
  TileKernel<T> several_panels[tallest + 1];
  TileKernel<T> one_panel[ways][widest + 1][tallest + 1];
  TileKernel<T> packing_panel[ways][tallest + 1];
  void (*transpose)(const T* from, std::int64_t ld, T* to, std::int64_t to_ld) noexcept;
};

template <class T, class Level>
struct KernelTable {
  static constexpr int most_rows = Level::accumulators / Level::vectors;

  // A tile of few rows covers several panels: independent sums hide the latency of a multiply-add.
  static constexpr int panels(int rows) {
    const int fitting = most_rows / rows;
    return fitting >= 4 ? 4 : fitting >= 2 ? 2 : 1;
  }

  template <Stored left, int rows = 1, int vectors = 1>
  static constexpr void tiles(PanelKernels<T>& f) {
    constexpr auto way = static_cast<std::size_t>(left);
    f.one_panel[way][vectors][rows] = Level::template run<T, rows, vectors, left, Stored::packed>;
    if constexpr (vectors < Level::vectors) {
      tiles<left, rows, vectors + 1>(f);
    } else {
      f.packing_panel[way][rows] = Level::template run<T, rows, vectors, left, Stored::packing>;
      if constexpr (left == Stored::by_rows) {
        constexpr int across = panels(rows) * Level::vectors;
        f.panels[rows] = panels(rows);
        f.several_panels[rows] = Level::template run<T, rows, across, left, Stored::packed>;
      }
      if constexpr (rows < most_rows) tiles<left, rows + 1>(f);
    }
  }
};

template <class T>
struct MakePanelKernels {
  template <class Level>
  static constexpr PanelKernels<T> of() {
    using L = Layout<T, Level>;
    static_assert(KernelTable<T, Level>::most_rows <= PanelKernels<T>::tallest &&
                  Level::vectors <= PanelKernels<T>::widest);
    static_assert(L::lanes <= PanelKernels<T>::most_lanes);
    static_assert(column_block % L::width == 0);
    PanelKernels<T> f{};
    f.lanes = L::lanes;
    f.width = L::width;
    f.most_rows = KernelTable<T, Level>::most_rows;
    f.transpose = Level::template turn<T>;
    using Adds = KernelTable<T, Level>;
    Adds::template tiles<Stored::by_rows>(f);
    Adds::template tiles<Stored::packed>(f);
    Adds::template tiles<Stored::packing>(f);
    return f;
  }
};

template <class T>
const PanelKernels<T>& panel_kernels() noexcept {
  return for_this_processor<MakePanelKernels<T>>();
}

// Prefetches the lines of a tile of C while k runs.
template <class T>
void prefetch(std::int64_t rows, std::int64_t columns, const T* c, std::int64_t ldc) noexcept {
  constexpr std::int64_t line = 64 / sizeof(T);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; j += line) __builtin_prefetch(c + i * ldc + j, 1);
  }
}

// C = A B + beta C for at most row_block rows and k <= most_depth. A is stored by rows, or, with a buffer for
// the packed form, transposed. B is stored in panels, or, with a buffer, by rows; a narrow last panel is
// already in that buffer. The first tiles pack the operands while they multiply, which hides the cost: the
// tiles of the first panel pack A, the first tile of every panel packs B.
template <class T>
void multiply(const PanelKernels<T>& f, std::int64_t k, Operand<T> a, Operand<T> b, T beta,
              MatrixView<T> c) noexcept {
  const RowTiles tiles(c.rows, f.most_rows);
  const std::int64_t n = c.columns;
  // With more than one tile, tiles are too tall to cover several panels.
  const int panels = tiles.count == 1 && !a.packed && !b.packed ? f.panels[c.rows] : 1;
  const auto panel = [&](std::int64_t j) -> Operand<T> {
    if (b.packed) return {b.packed + j * k};
    return {b.data + j / f.width * b.ld, b.ld};
  };
  for (std::int64_t t = 0; t < tiles.count; ++t) {
    const std::int64_t rows = tiles.rows(t);
    const std::int64_t first = tiles.first(t);
    T* const row = c.at(first, 0);
    const auto run = [&](std::int64_t j, std::int64_t vectors, T keep, T* to, std::int64_t to_ld) {
      Stored stored = Stored::packed;
      Operand<T> left;
      if (!a.packed) {
        stored = Stored::by_rows;
        left = {a.data + first * a.ld, a.ld};
      } else if (j == 0) {
        stored = Stored::packing;
        left = {a.data + first, a.ld, a.packed + first * k};
      } else {
        left = {a.packed + first * k};
      }
      const auto way = static_cast<std::size_t>(stored);
      if (b.packed && t == 0 && j + f.width <= n) {
        f.packing_panel[way][rows](k, left, {b.data + j, b.ld, b.packed + j * k}, keep, to, to_ld);
      } else {
        f.one_panel[way][vectors][rows](k, left, panel(j), keep, to, to_ld);
      }
    };
    std::int64_t j = 0;
    for (; panels > 1 && j + panels * f.width <= n; j += panels * f.width) {
      f.several_panels[rows](k, {a.data + first * a.ld, a.ld}, panel(j), beta, row + j, c.ld);
    }
    for (; j + f.width <= n; j += f.width) {
      prefetch(rows, f.width, row + j, c.ld);
      run(j, f.width / f.lanes, beta, row + j, c.ld);
    }
    if (j == n) continue;
    // The last panel is narrow, and its last vector may extend beyond C.
    const std::int64_t vectors = (n - j + f.lanes - 1) / f.lanes;
    T result[PanelKernels<T>::tallest * PanelKernels<T>::widest * PanelKernels<T>::most_lanes];
    run(j, vectors, T(0), result, vectors * f.lanes);
    put_edge(result, vectors * f.lanes, 1, beta, c.block(first, j, rows, n - j));
  }
}

// The depth of a block, a function of k alone; equal for all blocks but the last.
std::int64_t depth_of(std::int64_t k) noexcept {
  const std::int64_t blocks = std::max<std::int64_t>((k + most_depth - 1) / most_depth, 1);
  return std::max<std::int64_t>(((k + blocks - 1) / blocks + 7) / 8 * 8, 8);
}

// One panel, of as many columns as B [k, columns].
template <class T>
void pack_panel(const PanelKernels<T>& f, MatrixView<const T> b, T* to) noexcept {
  const std::int64_t k = b.rows, columns = b.columns;
  if (!b.transposed) {
    for (std::int64_t p = 0; p < k; ++p) {
      std::copy_n(b.at(p, 0), columns, to + p * f.width);
      std::fill(to + p * f.width + columns, to + (p + 1) * f.width, T(0));
    }
    return;
  }
  const std::int64_t whole_columns = columns / f.lanes * f.lanes;
  const std::int64_t whole_k = k / f.lanes * f.lanes;
  for (std::int64_t j = 0; j < whole_columns; j += f.lanes) {
    for (std::int64_t p = 0; p < whole_k; p += f.lanes)
      f.transpose(b.at(p, j), b.ld, to + p * f.width + j, f.width);
  }
  for (std::int64_t p = 0; p < k; ++p) {
    T* row = to + p * f.width;
    for (std::int64_t j = p < whole_k ? whole_columns : 0; j < columns; ++j) row[j] = *b.at(p, j);
    std::fill(row + columns, row + f.width, T(0));
  }
}

}  // namespace

template <class T>
std::int64_t packed_size(std::int64_t k, std::int64_t n) noexcept {
  const std::int64_t width = panel_kernels<T>().width;
  return (n + width - 1) / width * width * k;
}

template <class T>
void pack(MatrixView<const T> b, T* packed) noexcept {
  const PanelKernels<T>& f = panel_kernels<T>();
  for (std::int64_t j = 0; j < b.columns; j += f.width)
    pack_panel(f, b.slice_columns(j, std::min(j + f.width, b.columns)), packed + j * b.rows);
}

template <class T>
void packed_gemm(MatrixView<const T> a, const T* packed, T beta, MatrixView<T> c) noexcept {
  const PanelKernels<T>& f = panel_kernels<T>();
  const std::int64_t k = a.columns, depth = depth_of(k);
  for (std::int64_t j = 0; j < c.columns; j += column_block) {
    for (std::int64_t p = 0; p == 0 || p < k; p += depth) {
      const Operand<T> right{packed + j * k + p * f.width, f.width * k};
      for (std::int64_t i = 0; i < c.rows; i += row_block) {
        const MatrixView<T> to =
            c.block(i, j, std::min(row_block, c.rows - i), std::min(column_block, c.columns - j));
        multiply(f, std::min(depth, k - p), {a.at(i, p), a.ld}, right, p == 0 ? beta : T(1), to);
      }
    }
  }
}

template <class T>
std::int64_t blocked_workspace() noexcept {
  return (column_block + row_block) * most_depth;
}

template <class T>
void blocked_gemm(MatrixView<const T> a, MatrixView<const T> b, T beta, MatrixView<T> c,
                  T* workspace) noexcept {
  const PanelKernels<T>& f = panel_kernels<T>();
  const std::int64_t k = a.columns, step = depth_of(k);
  T* const right = workspace;
  T* const left = workspace + column_block * most_depth;
  for (std::int64_t j = 0; j < c.columns; j += column_block) {
    const std::int64_t columns = std::min(column_block, c.columns - j);
    for (std::int64_t p = 0; p == 0 || p < k; p += step) {
      const std::int64_t depth = std::min(step, k - p);
      const std::int64_t whole = b.transposed ? 0 : columns / f.width * f.width;
      pack(b.block(p, j + whole, depth, columns - whole), right + whole * depth);
      for (std::int64_t i = 0; i < c.rows; i += row_block) {
        const Operand<T> of_a{a.at(i, p), a.ld, a.transposed ? left : nullptr};
        const Operand<T> of_b =
            b.transposed || i > 0 ? Operand<T>{right, f.width * depth} : Operand<T>{b.at(p, j), b.ld, right};
        const MatrixView<T> to = c.block(i, j, std::min(row_block, c.rows - i), columns);
        multiply(f, depth, of_a, of_b, p == 0 ? beta : T(1), to);
      }
    }
  }
}

#define RILL_INSTANTIATE(T)                                                            \
  template std::int64_t packed_size<T>(std::int64_t, std::int64_t) noexcept;           \
  template void pack(MatrixView<const T>, T*) noexcept;                                \
  template void packed_gemm(MatrixView<const T>, const T*, T, MatrixView<T>) noexcept; \
  template std::int64_t blocked_workspace<T>() noexcept;                               \
  template void blocked_gemm(MatrixView<const T>, MatrixView<const T>, T, MatrixView<T>, T*) noexcept;
RILL_INSTANTIATE(float)
RILL_INSTANTIATE(double)
#undef RILL_INSTANTIATE

}  // namespace rill::kernels
