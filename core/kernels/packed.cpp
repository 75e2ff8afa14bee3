#include <rill/core/kernels/packed.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include <rill/core/kernels/simd.h>

namespace rill::kernels {
namespace {

// B is stored as panels of some columns, each k rows of that width, the last panel filled up with zeros. A
// tile of C, a few rows by one or more panels, stays in registers while k runs. The tile is written with the
// compiler's vector type and compiled once for each level, in functions with its instruction set.

// A block of B, depth by columns, stays in the second-level cache; tiles of A pass through the first.
constexpr std::int64_t row_block = 96;
constexpr std::int64_t column_block = 768;  // a multiple of every panel's width
constexpr std::int64_t most_depth = 256;

// A block of rows of A: stored by rows, `stride` apart, or packed tile by tile, k rows of the tile's height.
template <class T>
struct Left {
  const T* data;
  std::int64_t stride;
  bool packed;
};

// A packed matrix from some row on; the matrix has `height` rows, so a panel is that many times its width.
template <class T>
struct Right {
  const T* data;
  std::int64_t height;

  // From column j on, the first of a panel.
  Right from(std::int64_t j) const noexcept { return {data + j * height, height}; }
};

template <class T, class Level>
struct Layout {
  using Vector __attribute__((vector_size(Level::bytes), may_alias)) = T;
  static constexpr int lanes = Level::bytes / static_cast<int>(sizeof(T));
  static constexpr int width = Level::vectors * lanes;
  static constexpr int most_rows = Level::accumulators / Level::vectors;

  // Few rows take several panels at once: independent sums hide the latency of a multiply-add.
  static constexpr int panels(int rows) {
    const int fitting = most_rows / rows;
    return fitting >= 4 ? 4 : fitting >= 2 ? 2 : 1;
  }
};

// `across` vectors from one panel or more.
template <class T, class Level, int rows, int across, bool packed_left>
RILL_INLINE void tile(std::int64_t k, const T* a, std::int64_t lda, Right<T> b, T beta, T* c,
                      std::int64_t ldc) noexcept {
  using L = Layout<T, Level>;
  typename L::Vector sums[rows][across] = {};
  const T* panel = b.data;
  for (std::int64_t p = 0; p < k; ++p) {
    typename L::Vector right[across];
#pragma GCC unroll 16
    for (int v = 0; v < across; ++v) {
      const T* row = panel + v / Level::vectors * b.height * L::width;
      right[v] = reinterpret_cast<const typename L::Vector*>(row)[v % Level::vectors];
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const T left = packed_left ? a[i] : a[i * lda];
#pragma GCC unroll 16
      for (int v = 0; v < across; ++v) sums[i][v] += left * right[v];
    }
    panel += L::width;
    a += packed_left ? rows : 1;
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < across; ++v) {
      // C is not aligned as a vector, hence the copies, which become unaligned loads and stores.
      T* to = c + i * ldc + v * L::lanes;
      typename L::Vector old = {};
      if (beta != T(0)) std::memcpy(&old, to, sizeof(old));
      old = sums[i][v] + beta * old;
      std::memcpy(to, &old, sizeof(old));
    }
  }
}

// The transpose of a square block as wide as a vector, to rows `width` apart: rounds of interleaving halves.
template <class T, class Level, std::size_t... lane>
RILL_INLINE void transpose(const T* from, std::int64_t ld, T* to, std::index_sequence<lane...>) noexcept {
  using L = Layout<T, Level>;
  constexpr int n = L::lanes;
  typename L::Vector x[n];
  typename L::Vector y[n];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) std::memcpy(&x[i], from + i * ld, sizeof(x[i]));
#pragma GCC unroll 4
  for (int round = 1; round < n; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < n / 2; ++i) {
      y[2 * i] = __builtin_shufflevector(x[i], x[i + n / 2], (lane / 2 + lane % 2 * n)...);
      y[2 * i + 1] = __builtin_shufflevector(x[i], x[i + n / 2], (lane / 2 + n / 2 + lane % 2 * n)...);
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) x[i] = y[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) std::memcpy(to + i * L::width, &x[i], sizeof(x[i]));
}

template <class T>
using Tile = void (*)(std::int64_t k, const T* a, std::int64_t lda, Right<T> b, T beta, T* c,
                      std::int64_t ldc) noexcept;

// A level: bytes of a vector, vectors across a panel, vectors of C its registers hold, and what runs on it.
#define RILL_LEVEL(Name, bytes_, vectors_, accumulators_, target_)                                  \
  struct Name {                                                                                     \
    static constexpr int bytes = bytes_, vectors = vectors_, accumulators = accumulators_;          \
    template <class T, int rows, int across, bool packed_left>                                      \
    target_ static void run(std::int64_t k, const T* a, std::int64_t lda, Right<T> b, T beta, T* c, \
                            std::int64_t ldc) noexcept {                                            \
      tile<T, Name, rows, across, packed_left>(k, a, lda, b, beta, c, ldc);                         \
    }                                                                                               \
    template <class T>                                                                              \
    target_ static void turn(const T* from, std::int64_t ld, T* to) noexcept {                      \
      transpose<T, Name>(from, ld, to, std::make_index_sequence<bytes / sizeof(T)>());              \
    }                                                                                               \
  };
#if defined(__x86_64__)
RILL_LEVEL(Avx512, 64, 3, 24, RILL_TARGET("x86-64-v4"))
RILL_LEVEL(Avx2, 32, 2, 12, RILL_TARGET("x86-64-v3"))
#endif
RILL_LEVEL(Portable, 16, 2, 12, )
#undef RILL_LEVEL

// What a level offers. Tiles are found by their rows; those of a part of a panel by its vectors first.
template <class T>
struct Form {
  static constexpr int tallest = 8;
  static constexpr int widest = 3;
  static constexpr int most_lanes = 64 / sizeof(T);
  std::int64_t lanes;
  std::int64_t width;
  int most_rows;
  int panels[tallest + 1];  // that a tile of so many rows takes at once
  Tile<T> several_panels[tallest + 1];
  Tile<T> one_panel[widest + 1][tallest + 1];
  Tile<T> packed_left[widest + 1][tallest + 1];
  void (*transpose)(const T* from, std::int64_t ld, T* to) noexcept;
};

template <class T, class Level, int rows = 1, int vectors = 1>
constexpr void add_tiles(Form<T>& f) {
  using L = Layout<T, Level>;
  f.one_panel[vectors][rows] = Level::template run<T, rows, vectors, false>;
  f.packed_left[vectors][rows] = Level::template run<T, rows, vectors, true>;
  if constexpr (vectors < Level::vectors) {
    add_tiles<T, Level, rows, vectors + 1>(f);
  } else {
    f.panels[rows] = L::panels(rows);
    f.several_panels[rows] = Level::template run<T, rows, L::panels(rows) * Level::vectors, false>;
    if constexpr (rows < L::most_rows) add_tiles<T, Level, rows + 1>(f);
  }
}

template <class T, class Level>
constexpr Form<T> form_of() {
  using L = Layout<T, Level>;
  static_assert(L::most_rows <= Form<T>::tallest && Level::vectors <= Form<T>::widest);
  static_assert(L::lanes <= Form<T>::most_lanes);
  static_assert(column_block % L::width == 0);
  Form<T> f{};
  f.lanes = L::lanes;
  f.width = L::width;
  f.most_rows = L::most_rows;
  f.transpose = Level::template turn<T>;
  add_tiles<T, Level>(f);
  return f;
}

// What this processor uses.
template <class T>
const Form<T>& form() noexcept {
  static constexpr Form<T> portable = form_of<T, Portable>();
#if defined(__x86_64__)
  static constexpr Form<T> avx512 = form_of<T, Avx512>();
  static constexpr Form<T> avx2 = form_of<T, Avx2>();
  static const SimdLevel level = cpu_simd_level();
  if (level == SimdLevel::v4) return avx512;
  if (level == SimdLevel::v3) return avx2;
#endif
  return portable;
}

// The tiles of m <= row_block rows, as alike as possible: 9 rows are 5 and 4, not 8 and 1.
struct Tiles {
  std::int64_t m;
  std::int64_t count;

  Tiles(std::int64_t rows, int most_rows) : m(rows), count((rows + most_rows - 1) / most_rows) {}
  std::int64_t first(std::int64_t tile) const { return tile * m / count; }
  std::int64_t rows(std::int64_t tile) const { return first(tile + 1) - first(tile); }
};

// Has the lines of a tile of C on their way while k runs.
template <class T>
void prefetch(std::int64_t rows, std::int64_t columns, const T* c, std::int64_t ldc) noexcept {
  constexpr std::int64_t line = 64 / sizeof(T);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; j += line) __builtin_prefetch(c + i * ldc + j, 1);
  }
}

// C [m, n] = A [m, k] B + beta C for m <= row_block and k <= most_depth.
template <class T>
void multiply(const Form<T>& f, std::int64_t m, std::int64_t n, std::int64_t k, Left<T> a, Right<T> b, T beta,
              T* c, std::int64_t ldc) noexcept {
  const Tiles tiles(m, f.most_rows);
  // More tiles than one are too high to take several panels.
  const int panels = tiles.count == 1 && !a.packed ? f.panels[m] : 1;
  for (std::int64_t t = 0; t < tiles.count; ++t) {
    const std::int64_t rows = tiles.rows(t);
    const T* left = a.data + tiles.first(t) * (a.packed ? k : a.stride);
    T* const row = c + tiles.first(t) * ldc;
    std::int64_t j = 0;
    for (; panels > 1 && j + panels * f.width <= n; j += panels * f.width) {
      f.several_panels[rows](k, left, a.stride, b.from(j), beta, row + j, ldc);
    }
    const auto& of_one = a.packed ? f.packed_left : f.one_panel;
    for (; j + f.width <= n; j += f.width) {
      prefetch(rows, f.width, row + j, ldc);
      of_one[f.width / f.lanes][rows](k, left, a.stride, b.from(j), beta, row + j, ldc);
    }
    if (j == n) continue;
    // The last panel is narrow, and its last vector may reach beyond C.
    const std::int64_t vectors = (n - j + f.lanes - 1) / f.lanes;
    T result[Form<T>::tallest * Form<T>::widest * Form<T>::most_lanes];
    of_one[vectors][rows](k, left, a.stride, b.from(j), T(0), result, vectors * f.lanes);
    for (std::int64_t i = 0; i < rows; ++i) {
      const T* from = result + i * vectors * f.lanes;
      T* to = row + i * ldc + j;
      for (std::int64_t q = 0; q < n - j; ++q) to[q] = beta == T(0) ? from[q] : from[q] + beta * to[q];
    }
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
      f.transpose(b + i * ldb + p, ldb, to + p * f.width + i);
  }
  for (std::int64_t p = 0; p < k; ++p) {
    T* row = to + p * f.width;
    for (std::int64_t i = p < whole_k ? whole_columns : 0; i < columns; ++i) row[i] = b[i * ldb + p];
    std::fill(row + columns, row + f.width, T(0));
  }
}

// The tiles of op(A) = A^T [m, k], stored [k, m], for Left.
template <class T>
void pack_left(std::int64_t m, std::int64_t k, int most_rows, const T* a, std::int64_t lda, T* to) noexcept {
  const Tiles tiles(m, most_rows);
  // Along the rows of A, which are contiguous; copies of a known size are one or two moves each.
  if (most_rows == 8 && m % 8 == 0) {
    for (std::int64_t p = 0; p < k; ++p) {
      for (std::int64_t i = 0; i < m; i += 8) std::memcpy(to + i * k + p * 8, a + p * lda + i, 8 * sizeof(T));
    }
  } else if (most_rows == 6 && m % 6 == 0) {
    for (std::int64_t p = 0; p < k; ++p) {
      for (std::int64_t i = 0; i < m; i += 6) std::memcpy(to + i * k + p * 6, a + p * lda + i, 6 * sizeof(T));
    }
  } else {
    for (std::int64_t t = 0; t < tiles.count; ++t) {
      const std::int64_t first = tiles.first(t);
      const std::int64_t rows = tiles.rows(t);
      for (std::int64_t p = 0; p < k; ++p) {
        std::copy(a + p * lda + first, a + p * lda + first + rows, to + first * k + p * rows);
      }
    }
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
      const Right<T> right{packed + j * k + p * f.width, k};
      for (std::int64_t i = 0; i < m; i += row_block) {
        multiply(f, std::min(row_block, m - i), std::min(column_block, n - j), std::min(depth, k - p),
                 Left<T>{a + i * lda + p, lda, false}, right, p == 0 ? beta : T(1), c + i * ldc + j, ldc);
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
      pack(tb, part, columns, b + (tb ? j * ldb + p : p * ldb + j), ldb, right);
      for (std::int64_t i = 0; i < m; i += row_block) {
        const std::int64_t rows = std::min(row_block, m - i);
        if (ta) pack_left(rows, part, f.most_rows, a + p * lda + i, lda, left);
        const Left<T> rows_of_a = ta ? Left<T>{left, 0, true} : Left<T>{a + i * lda + p, lda, false};
        multiply(f, rows, columns, part, rows_of_a, Right<T>{right, part}, p == 0 ? beta : T(1),
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
