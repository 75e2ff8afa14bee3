#include <rill/core/gemm/packed.h>

#include <algorithm>

#include <rill/core/gemm/tile.h>

namespace rill::kernels {
namespace {

// B is stored as panels of some columns, each k rows of that width, the last panel filled up with zeros.

// A block of B, depth by columns, stays in the second-level cache; tiles of A pass through the first.
constexpr std::int64_t row_block = 96;
constexpr std::int64_t column_block = 768;  // a multiple of every panel's width
constexpr std::int64_t most_depth = 256;

// What a level offers. The indices of tiles are how A is stored, the vectors of a part of a panel, and rows;
// those of several panels take A by rows.
template <class T>
struct Form {
  static constexpr int tallest = 8;
  static constexpr int widest = 3;
  static constexpr int most_lanes = 64 / sizeof(T);
  static constexpr int ways = 3;  // by rows, packed, packing
  std::int64_t lanes;
  std::int64_t width;
  int most_rows;
  int panels[tallest + 1];  // that a tile of so many rows takes at once
  Tile<T> several_panels[tallest + 1];
  Tile<T> one_panel[ways][widest + 1][tallest + 1];
  Tile<T> packing_panel[ways][tallest + 1];
  void (*transpose)(const T* from, std::int64_t ld, T* to, std::int64_t to_ld) noexcept;
};

template <class T, class Level>
struct Add {
  static constexpr int most_rows = Level::accumulators / Level::vectors;

  // Few rows take several panels at once: independent sums hide the latency of a multiply-add.
  static constexpr int panels(int rows) {
    const int fitting = most_rows / rows;
    return fitting >= 4 ? 4 : fitting >= 2 ? 2 : 1;
  }

  template <Stored left, int rows = 1, int vectors = 1>
  static constexpr void tiles(Form<T>& f) {
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
struct MakeForm {
  template <class Level>
  static constexpr Form<T> of() {
    using L = Layout<T, Level>;
    static_assert(Add<T, Level>::most_rows <= Form<T>::tallest && Level::vectors <= Form<T>::widest);
    static_assert(L::lanes <= Form<T>::most_lanes);
    static_assert(column_block % L::width == 0);
    Form<T> f{};
    f.lanes = L::lanes;
    f.width = L::width;
    f.most_rows = Add<T, Level>::most_rows;
    f.transpose = Level::template turn<T>;
    using Adds = Add<T, Level>;
    Adds::template tiles<Stored::by_rows>(f);
    Adds::template tiles<Stored::packed>(f);
    Adds::template tiles<Stored::packing>(f);
    return f;
  }
};

template <class T>
const Form<T>& form() noexcept {
  return for_this_processor<MakeForm<T>>();
}

// Has the lines of a tile of C on their way while k runs.
template <class T>
void prefetch(std::int64_t rows, std::int64_t columns, const T* c, std::int64_t ldc) noexcept {
  constexpr std::int64_t line = 64 / sizeof(T);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; j += line) __builtin_prefetch(c + i * ldc + j, 1);
  }
}

// C [m, n] = A [m, k] B + beta C for m <= row_block and k <= most_depth. A is stored by rows, or, with a
// place for what is packed, A^T is. B is stored in panels, or, with a place, by rows; a last part of a panel
// is in that place already. The first tiles pack what they read, behind multiplications that take longer:
// those of the first panel pack A, the first of every panel packs B.
template <class T>
void multiply(const Form<T>& f, std::int64_t m, std::int64_t n, std::int64_t k, Operand<T> a, Operand<T> b,
              T beta, T* c, std::int64_t ldc) noexcept {
  const Tiles tiles(m, f.most_rows);
  // More tiles than one are too high to take several panels.
  const int panels = tiles.count == 1 && !a.packed && !b.packed ? f.panels[m] : 1;
  const auto panel = [&](std::int64_t j) -> Operand<T> {
    if (b.packed) return {b.packed + j * k};
    return {b.data + j / f.width * b.ld, b.ld};
  };
  for (std::int64_t t = 0; t < tiles.count; ++t) {
    const std::int64_t rows = tiles.rows(t);
    const std::int64_t first = tiles.first(t);
    T* const row = c + first * ldc;
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
      f.several_panels[rows](k, {a.data + first * a.ld, a.ld}, panel(j), beta, row + j, ldc);
    }
    for (; j + f.width <= n; j += f.width) {
      prefetch(rows, f.width, row + j, ldc);
      run(j, f.width / f.lanes, beta, row + j, ldc);
    }
    if (j == n) continue;
    // The last panel is narrow, and its last vector may reach beyond C.
    const std::int64_t vectors = (n - j + f.lanes - 1) / f.lanes;
    T result[Form<T>::tallest * Form<T>::widest * Form<T>::most_lanes];
    run(j, vectors, T(0), result, vectors * f.lanes);
    put_edge(rows, n - j, result, vectors * f.lanes, 1, beta, row + j, ldc);
  }
}

// k is cut into parts of equal depth but the last, by k alone.
std::int64_t depth_of(std::int64_t k) noexcept {
  const std::int64_t parts = std::max<std::int64_t>((k + most_depth - 1) / most_depth, 1);
  return std::max<std::int64_t>(((k + parts - 1) / parts + 7) / 8 * 8, 8);
}

// One panel: `columns` columns of op(B) in k rows.
template <class T>
void pack_panel(const Form<T>& f, bool transposed, std::int64_t k, std::int64_t columns, const T* b,
                std::int64_t ldb, T* to) noexcept {
  if (!transposed) {
    for (std::int64_t p = 0; p < k; ++p) {
      std::copy(b + p * ldb, b + p * ldb + columns, to + p * f.width);
      std::fill(to + p * f.width + columns, to + (p + 1) * f.width, T(0));
    }
    return;
  }
  const std::int64_t whole_columns = columns / f.lanes * f.lanes;
  const std::int64_t whole_k = k / f.lanes * f.lanes;
  for (std::int64_t i = 0; i < whole_columns; i += f.lanes) {
    for (std::int64_t p = 0; p < whole_k; p += f.lanes)
      f.transpose(b + i * ldb + p, ldb, to + p * f.width + i, f.width);
  }
  for (std::int64_t p = 0; p < k; ++p) {
    T* row = to + p * f.width;
    for (std::int64_t i = p < whole_k ? whole_columns : 0; i < columns; ++i) row[i] = b[i * ldb + p];
    std::fill(row + columns, row + f.width, T(0));
  }
}

}  // namespace

template <class T>
std::int64_t packed_size(std::int64_t k, std::int64_t n) noexcept {
  const std::int64_t width = form<T>().width;
  return (n + width - 1) / width * width * k;
}

template <class T>
void pack(bool transposed, std::int64_t k, std::int64_t n, const T* b, std::int64_t ldb, T* packed) noexcept {
  const Form<T>& f = form<T>();
  for (std::int64_t j = 0; j < n; j += f.width) {
    pack_panel(f, transposed, k, std::min(f.width, n - j), b + (transposed ? j * ldb : j), ldb,
               packed + j * k);
  }
}

template <class T>
void packed_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda,
                 const T* packed, T beta, T* c, std::int64_t ldc) noexcept {
  const Form<T>& f = form<T>();
  const std::int64_t depth = depth_of(k);
  for (std::int64_t j = 0; j < n; j += column_block) {
    for (std::int64_t p = 0; p == 0 || p < k; p += depth) {
      const Operand<T> right{packed + j * k + p * f.width, f.width * k};
      for (std::int64_t i = 0; i < m; i += row_block) {
        multiply(f, std::min(row_block, m - i), std::min(column_block, n - j), std::min(depth, k - p),
                 {a + i * lda + p, lda}, right, p == 0 ? beta : T(1), c + i * ldc + j, ldc);
      }
    }
  }
}

template <class T>
std::int64_t blocked_workspace() noexcept {
  return (column_block + row_block) * most_depth;
}

template <class T>
void blocked_gemm(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
                  std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc,
                  T* workspace) noexcept {
  const Form<T>& f = form<T>();
  const std::int64_t depth = depth_of(k);
  T* const right = workspace;
  T* const left = workspace + column_block * most_depth;
  for (std::int64_t j = 0; j < n; j += column_block) {
    const std::int64_t columns = std::min(column_block, n - j);
    for (std::int64_t p = 0; p == 0 || p < k; p += depth) {
      const std::int64_t part = std::min(depth, k - p);
      const T* const from = b + (tb ? j * ldb + p : p * ldb + j);
      const std::int64_t whole = tb ? 0 : columns / f.width * f.width;
      pack(tb, part, columns - whole, from + whole, ldb, right + whole * part);
      for (std::int64_t i = 0; i < m; i += row_block) {
        const Operand<T> of_a =
            ta ? Operand<T>{a + p * lda + i, lda, left} : Operand<T>{a + i * lda + p, lda};
        const Operand<T> of_b =
            tb || i > 0 ? Operand<T>{right, f.width * part} : Operand<T>{from, ldb, right};
        multiply(f, std::min(row_block, m - i), columns, part, of_a, of_b, p == 0 ? beta : T(1),
                 c + i * ldc + j, ldc);
      }
    }
  }
}

#define RILL_INSTANTIATE(T)                                                                                \
  template std::int64_t packed_size<T>(std::int64_t, std::int64_t) noexcept;                               \
  template void pack<T>(bool, std::int64_t, std::int64_t, const T*, std::int64_t, T*) noexcept;            \
  template void packed_gemm<T>(std::int64_t, std::int64_t, std::int64_t, const T*, std::int64_t, const T*, \
                               T, T*, std::int64_t) noexcept;                                              \
  template std::int64_t blocked_workspace<T>() noexcept;                                                   \
  template void blocked_gemm<T>(bool, bool, std::int64_t, std::int64_t, std::int64_t, const T*,            \
                                std::int64_t, const T*, std::int64_t, T, T*, std::int64_t, T*) noexcept;
RILL_INSTANTIATE(float)
RILL_INSTANTIATE(double)
#undef RILL_INSTANTIATE

}  // namespace rill::kernels
