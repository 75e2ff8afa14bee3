#include <rill/core/gemm/thin.h>

#include <algorithm>

#include <rill/core/gemm/tile.h>

namespace rill::kernels {
namespace {

// A block of B, depth by columns, comes from memory for the first tile and from the second-level cache for
// the others; each of its rows is on a page of its own, so the depth must not outrun the table of pages.
constexpr std::int64_t most_depth = 128;
constexpr std::int64_t column_block = 768;

// Bytes of A that are turned at once, which should stay in the first-level cache.
constexpr std::int64_t most_turned = 32768;

// What a level offers, by the rows of a tile.
template <class T>
struct Form {
  static constexpr int tallest = 12;
  static constexpr int most_lanes = 64 / sizeof(T);
  std::int64_t lanes;
  int most_rows;
  int across[tallest + 1];  // vectors of a wide tile
  Tile<T> wide[tallest + 1];
  Tile<T> narrow[tallest + 1];  // one vector
  Tile<T> turned[tallest + 1];  // one vector, where A comes from memory
};

template <class T>
struct MakeForm {
  template <class Level, int rows = 1>
  static constexpr void add_tiles(Form<T>& f) {
    constexpr int across = std::min(Level::accumulators / rows, 4);
    f.across[rows] = across;
    f.wide[rows] = Level::template run<T, rows, across, Stored::by_rows, Stored::far>;
    f.narrow[rows] = Level::template run<T, rows, 1, Stored::by_rows, Stored::far>;
    f.turned[rows] = Level::template run<T, rows, 1, Stored::far, Stored::by_rows>;
    if constexpr (rows < Level::accumulators / 2) add_tiles<Level, rows + 1>(f);
  }

  template <class Level>
  static constexpr Form<T> of() {
    using L = Layout<T, Level>;
    static_assert(Level::accumulators / 2 <= Form<T>::tallest && L::lanes <= Form<T>::most_lanes);
    Form<T> f{};
    f.lanes = L::lanes;
    f.most_rows = Level::accumulators / 2;
    add_tiles<Level>(f);
    return f;
  }
};

// The last columns, fewer than a vector has lanes, which must not be read or written beyond.
template <class T>
void last_columns(const Form<T>& f, std::int64_t rows, std::int64_t columns, std::int64_t k, const T* a,
                  std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) noexcept {
  T right[most_depth * Form<T>::most_lanes];
  T result[Form<T>::tallest * Form<T>::most_lanes];
  for (std::int64_t p = 0; p < k; ++p) {
    std::copy_n(b + p * ldb, columns, right + p * f.lanes);
    std::fill(right + p * f.lanes + columns, right + (p + 1) * f.lanes, T(0));
  }
  f.narrow[rows](k, {a, lda}, {right, f.lanes}, T(0), result, f.lanes);
  put_edge(rows, columns, result, f.lanes, 1, beta, c, ldc);
}

}  // namespace

template <class T>
void thin_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda, const T* b,
               std::int64_t ldb, T beta, T* c, std::int64_t ldc) noexcept {
  const Form<T>& f = for_this_processor<MakeForm<T>>();
  const Tiles tiles(m, f.most_rows);
  for (std::int64_t block = 0; block < n; block += column_block) {
    const std::int64_t end = std::min(block + column_block, n);
    for (std::int64_t p = 0; p == 0 || p < k; p += most_depth) {
      const std::int64_t depth = std::min(most_depth, k - p);
      const T keep = p == 0 ? beta : T(1);
      for (std::int64_t t = 0; t < tiles.count; ++t) {
        const std::int64_t rows = tiles.rows(t);
        const T* const left = a + tiles.first(t) * lda + p;
        const T* const right = b + p * ldb;
        T* const to = c + tiles.first(t) * ldc;
        std::int64_t j = block;
        const std::int64_t wide = f.across[rows] * f.lanes;
        for (; j + wide <= end; j += wide)
          f.wide[rows](depth, {left, lda}, {right + j, ldb}, keep, to + j, ldc);
        for (; j + f.lanes <= end; j += f.lanes)
          f.narrow[rows](depth, {left, lda}, {right + j, ldb}, keep, to + j, ldc);
        if (j < end) last_columns(f, rows, end - j, depth, left, lda, right + j, ldb, keep, to + j, ldc);
      }
    }
  }
}

// C^T = B A^T: rows of B meet a vector across the rows of A, which is turned for that; C comes out turned.
template <class T>
void thin_gemm_transposed(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda,
                          const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) noexcept {
  const Form<T>& f = for_this_processor<MakeForm<T>>();
  const Tiles tiles(n, f.most_rows);
  constexpr std::int64_t elements = most_turned / sizeof(T);
  T turned[elements];
  T result[Form<T>::tallest * Form<T>::most_lanes];
  if (m == 0) return;
  const std::int64_t groups = (m + f.lanes - 1) / f.lanes;
  const std::int64_t most = elements / (groups * f.lanes);
  for (std::int64_t p = 0; p == 0 || p < k; p += most) {
    const std::int64_t depth = std::min(most, k - p);
    const T keep = p == 0 ? beta : T(1);
    for (std::int64_t i = 0; i < groups * f.lanes; ++i) {
      T* const to = turned + i / f.lanes * depth * f.lanes + i % f.lanes;
      for (std::int64_t q = 0; q < depth; ++q) to[q * f.lanes] = i < m ? a[i * lda + p + q] : T(0);
    }
    for (std::int64_t t = 0; t < tiles.count; ++t) {
      const std::int64_t j = tiles.first(t);
      const std::int64_t rows = tiles.rows(t);
      for (std::int64_t g = 0; g < groups; ++g) {
        const T* const right = turned + g * depth * f.lanes;
        f.turned[rows](depth, {b + j * ldb + p, ldb}, {right, f.lanes}, T(0), result, f.lanes);
        const std::int64_t first = g * f.lanes;
        put_edge(std::min(f.lanes, m - first), rows, result, 1, f.lanes, keep, c + first * ldc + j, ldc);
      }
    }
  }
}

#define RILL_INSTANTIATE(T)                                                                               \
  template void thin_gemm<T>(std::int64_t, std::int64_t, std::int64_t, const T*, std::int64_t, const T*,  \
                             std::int64_t, T, T*, std::int64_t) noexcept;                                 \
  template void thin_gemm_transposed<T>(std::int64_t, std::int64_t, std::int64_t, const T*, std::int64_t, \
                                        const T*, std::int64_t, T, T*, std::int64_t) noexcept;
RILL_INSTANTIATE(float)
RILL_INSTANTIATE(double)
#undef RILL_INSTANTIATE

}  // namespace rill::kernels
