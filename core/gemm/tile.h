/// The microkernel of all of rill's own products: a tile of a few rows of C by a few vectors of columns, kept
/// in registers during the loop over k. Internal to core/gemm.
///
/// Written with the compiler's vector types and compiled once for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include <rill/core/gemm/matrix_view.h>
#include <rill/core/kernels/simd.h>

namespace rill::kernels {

/// The layout of an operand of a tile.
enum class Stored : std::uint8_t {
  by_rows,
  packed,   ///< A tile by tile, k rows of the tile's height; B in panels, k rows of a panel's width
  packing,  ///< A^T or B by rows; the tile also packs it
  far,      ///< by rows from memory: those of the next tiles are prefetched
};

template <class T>
struct Operand {
  const T* data = nullptr;
  std::int64_t ld = 0;  ///< leading dimension; for B in panels, the distance between panels
  T* packed = nullptr;  ///< receives the packed operand; for B with the alignment of a vector
};

template <class T, class Level>
struct Layout {
  using Vector __attribute__((vector_size(Level::bytes), may_alias)) = T;
  static constexpr int lanes = Level::bytes / static_cast<int>(sizeof(T));
  static constexpr int width = Level::vectors * lanes;  ///< of a panel
};

/// C = A B + beta C for one tile, `across` vectors of columns from one panel or more.
template <class T, class Level, int rows, int across, Stored left, Stored right>
RILL_INLINE void tile(std::int64_t k, Operand<T> a, Operand<T> b, T beta, T* c, std::int64_t ldc) noexcept {
  using L = Layout<T, Level>;
  using Vector = typename L::Vector;
  static_assert(right != Stored::packing || across == Level::vectors, "what is packed is one panel");
  constexpr int line = 64 / sizeof(T);
  constexpr int vectors_of_line = 64 / Level::bytes;
  Vector sums[rows][across] = {};
  for (std::int64_t p = 0; p < k; ++p) {
    // Rows are far apart, and the hardware prefetcher does not predict that the next tile continues where
    // this one ends. Prefetched are the tile of B after the next, the next of A, and the next or the one
    // after it of A^T.
    if constexpr (right == Stored::far || right == Stored::packing) {
#pragma GCC unroll 16
      for (int v = 0; v < across; v += vectors_of_line)
        __builtin_prefetch(b.data + (2 * across + v) * L::lanes);
    }
    if constexpr (left == Stored::packing) {
      __builtin_prefetch(a.data + line);
    } else if constexpr (left == Stored::far) {
      if (p % line == 0) {
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) __builtin_prefetch(a.data + (rows + i) * a.ld);
      }
    }
    Vector of_b[across];
#pragma GCC unroll 16
    for (int v = 0; v < across; ++v) {
      if constexpr (right == Stored::packed) {
        const T* const row = b.data + v / Level::vectors * b.ld;
        of_b[v] = reinterpret_cast<const Vector*>(row)[v % Level::vectors];
      } else {
        std::memcpy(&of_b[v], b.data + v * L::lanes, sizeof(Vector));
      }
      if constexpr (right == Stored::packing) reinterpret_cast<Vector*>(b.packed)[v] = of_b[v];
    }
    if constexpr (left == Stored::packing) {
      std::memcpy(a.packed, a.data, rows * sizeof(T));
      a.packed += rows;
    }
    constexpr bool side_by_side = left == Stored::packed || left == Stored::packing;
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const T of_a = side_by_side ? a.data[i] : a.data[i * a.ld];
#pragma GCC unroll 16
      for (int v = 0; v < across; ++v) sums[i][v] += of_a * of_b[v];
    }
    a.data += left == Stored::packing ? a.ld : left == Stored::packed ? rows : 1;
    b.data += right == Stored::packed ? L::width : b.ld;
    if constexpr (right == Stored::packing) b.packed += L::width;
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < across; ++v) {
      // C does not have the alignment of a vector, hence the copies, which become unaligned loads and stores.
      T* to = c + i * ldc + v * L::lanes;
      Vector old = {};
      if (beta != T(0)) std::memcpy(&old, to, sizeof(old));
      old = sums[i][v] + beta * old;
      std::memcpy(to, &old, sizeof(old));
    }
  }
}

/// Transposes a square block as wide as a vector, in place if `to` is `from`, by rounds of interleaving
/// halves.
template <class T, class Level, std::size_t... lane>
RILL_INLINE void transpose(const T* from, std::int64_t ld, T* to, std::int64_t to_ld,
                           std::index_sequence<lane...>) noexcept {
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
  for (int i = 0; i < n; ++i) std::memcpy(to + i * to_ld, &x[i], sizeof(x[i]));
}

template <class T>
using TileKernel = void (*)(std::int64_t k, const Operand<T>& a, const Operand<T>& b, T beta, T* c,
                            std::int64_t ldc) noexcept;

// Local to each source file, since the same name may mean other instructions in a user's build.
namespace {

// A level: bytes of a vector, vectors across a panel, vectors of C its registers hold, and its functions.
#define RILL_LEVEL(Name, bytes_, vectors_, accumulators_, target_)                                  \
  struct Name {                                                                                     \
    static constexpr int bytes = bytes_, vectors = vectors_, accumulators = accumulators_;          \
    template <class T, int rows, int across, Stored left, Stored right>                             \
    target_ static void run(std::int64_t k, const Operand<T>& a, const Operand<T>& b, T beta, T* c, \
                            std::int64_t ldc) noexcept {                                            \
      tile<T, Name, rows, across, left, right>(k, a, b, beta, c, ldc);                              \
    }                                                                                               \
    template <class T>                                                                              \
    target_ static void turn(const T* from, std::int64_t ld, T* to, std::int64_t to_ld) noexcept {  \
      transpose<T, Name>(from, ld, to, to_ld, std::make_index_sequence<bytes / sizeof(T)>());       \
    }                                                                                               \
  };
#if defined(__x86_64__)
RILL_LEVEL(Avx512, 64, 3, 24, RILL_TARGET("x86-64-v4"))
RILL_LEVEL(Avx2, 32, 2, 12, RILL_TARGET("x86-64-v3"))
#endif
RILL_LEVEL(Portable, 16, 2, 12, )
#undef RILL_LEVEL

}  // namespace

/// The value of Make::of<Level>() for this processor.
template <class Make>
const auto& for_this_processor() noexcept {
  static constexpr auto portable = Make::template of<Portable>();
#if defined(__x86_64__)
  static constexpr auto avx512 = Make::template of<Avx512>();
  static constexpr auto avx2 = Make::template of<Avx2>();
  static const SimdLevel level = cpu_simd_level();
  if (level == SimdLevel::v4) return avx512;
  if (level == SimdLevel::v3) return avx2;
#endif
  return portable;
}

/// C = result + beta C for a tile computed into a buffer because C ends before its last vector: element (i,
/// j) of the result is at i · row + j · column.
template <class T>
void put_edge(const T* result, std::int64_t row, std::int64_t column, T beta, MatrixView<T> c) noexcept {
  for (std::int64_t i = 0; i < c.rows; ++i) {
    const T* const from = result + i * row;
    T* const to = c.at(i, 0);
    for (std::int64_t j = 0; j < c.columns; ++j)
      to[j] = beta == T(0) ? from[j * column] : from[j * column] + beta * to[j];
  }
}

/// The heights of the tiles for m rows, as equal as possible: 9 rows are 5 and 4, not 8 and 1.
struct RowTiles {
  std::int64_t m;
  std::int64_t count;

  RowTiles(std::int64_t rows, int most_rows) : m(rows), count((rows + most_rows - 1) / most_rows) {}
  std::int64_t first(std::int64_t tile) const { return tile * m / count; }
  std::int64_t rows(std::int64_t tile) const { return first(tile + 1) - first(tile); }
};

}  // namespace rill::kernels
