#include <rill/core/kernels/packed.h>

#include <algorithm>
#include <cstring>

#include <rill/core/kernels/simd.h>

namespace rill::kernels {
namespace {

// B is stored as panels of some columns, each k rows of that width, the last panel filled up with zeros. A tile of C, a
// few rows by one or more panels, stays in registers while k runs. The tile is written with the compiler's vector type
// and compiled once for each level, inside a function that has the level's instruction set. Every
// element of C is one sum over k in order, whatever tile it belongs to.

// A level: bytes of a vector, vectors across a panel, and how many vectors of C its registers hold.
struct Avx512 {
  static constexpr int bytes = 64, vectors = 3, accumulators = 24;
};
struct Avx2 {
  static constexpr int bytes = 32, vectors = 2, accumulators = 12;
};
struct Portable {
  static constexpr int bytes = 16, vectors = 2, accumulators = 12;
};

// Rows of A that are multiplied with one panel after the other before the next rows: they stay in the cache.
constexpr std::int64_t row_block = 96;

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

// C is not aligned as a vector, hence the copies, which become unaligned loads and stores.
template <class T, class Level>
RILL_INLINE void store(typename Layout<T, Level>::Vector& sum, std::int64_t columns, T beta, T* c) noexcept {
  using L = Layout<T, Level>;
  if (columns >= L::lanes) {
    typename L::Vector old = {};
    if (beta != T(0)) std::memcpy(&old, c, sizeof(old));
    old = sum + beta * old;
    std::memcpy(c, &old, sizeof(old));
  } else {
    T lanes[L::lanes];
    std::memcpy(lanes, &sum, sizeof(sum));
    for (std::int64_t j = 0; j < columns; ++j) c[j] = beta == T(0) ? lanes[j] : lanes[j] + beta * c[j];
  }
}

// `columns` is how many columns exist from the tile's first on.
template <class T, class Level, int rows, int panels>
RILL_INLINE void tile(std::int64_t columns, std::int64_t k, const T* a, std::int64_t lda, const T* packed,
                      T beta, T* c, std::int64_t ldc) noexcept {
  using L = Layout<T, Level>;
  constexpr int across = panels * Level::vectors;
  typename L::Vector sums[rows][across] = {};
  for (std::int64_t p = 0; p < k; ++p) {
    typename L::Vector b[across];
#pragma GCC unroll 16
    for (int v = 0; v < across; ++v) {
      const T* row = packed + (v / Level::vectors * k + p) * L::width;
      b[v] = reinterpret_cast<const typename L::Vector*>(row)[v % Level::vectors];
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const T factor = a[i * lda + p];
#pragma GCC unroll 16
      for (int v = 0; v < across; ++v) sums[i][v] += factor * b[v];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < across; ++v) {
      store<T, Level>(sums[i][v], columns - v * L::lanes, beta, c + i * ldc + v * L::lanes);
    }
  }
}

template <class T, class Level, int panels>
RILL_INLINE void tile_of_rows(int rows, std::int64_t columns, std::int64_t k, const T* a, std::int64_t lda,
                              const T* packed, T beta, T* c, std::int64_t ldc) noexcept {
  using L = Layout<T, Level>;
#define RILL_TILE(R)                                                       \
  case R:                                                                  \
    if constexpr (R <= L::most_rows && panels <= L::panels(R)) {           \
      tile<T, Level, R, panels>(columns, k, a, lda, packed, beta, c, ldc); \
    }                                                                      \
    return;
  switch (rows) {
    RILL_TILE(1)
    RILL_TILE(2)
    RILL_TILE(3)
    RILL_TILE(4)
    RILL_TILE(5)
    RILL_TILE(6)
    RILL_TILE(7)
    RILL_TILE(8)
    default:
      return;
  }
#undef RILL_TILE
}

template <class T, class Level>
RILL_INLINE void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda,
                          const T* packed, T beta, T* c, std::int64_t ldc) noexcept {
  using L = Layout<T, Level>;
  for (std::int64_t block = 0; block < m; block += row_block) {
    const std::int64_t block_rows = std::min(row_block, m - block);
    const std::int64_t tiles = (block_rows + L::most_rows - 1) / L::most_rows;
    // Tiles as alike as possible: 9 rows are 5 and 4, not 8 and 1.
    const int panels = L::panels(static_cast<int>((block_rows + tiles - 1) / tiles));
    for (std::int64_t j = 0; j < n;) {
      const int taken = j + (panels - 1) * L::width < n ? panels : 1;
      for (std::int64_t t = 0; t < tiles; ++t) {
        const std::int64_t first = block + t * block_rows / tiles;
        const int rows = static_cast<int>(block + (t + 1) * block_rows / tiles - first);
        const T* at = a + first * lda;
        T* to = c + first * ldc + j;
        if (taken == 4) {
          tile_of_rows<T, Level, 4>(rows, n - j, k, at, lda, packed + j * k, beta, to, ldc);
        } else if (taken == 2) {
          tile_of_rows<T, Level, 2>(rows, n - j, k, at, lda, packed + j * k, beta, to, ldc);
        } else {
          tile_of_rows<T, Level, 1>(rows, n - j, k, at, lda, packed + j * k, beta, to, ldc);
        }
      }
      j += taken * L::width;
    }
  }
}

template <class T>
using Multiply = void (*)(std::int64_t, std::int64_t, std::int64_t, const T*, std::int64_t, const T*, T, T*,
                          std::int64_t) noexcept;

#if defined(__x86_64__)
template <class T>
__attribute__((target("arch=x86-64-v4"))) void multiply_v4(std::int64_t m, std::int64_t n, std::int64_t k,
                                                           const T* a, std::int64_t lda, const T* packed,
                                                           T beta, T* c, std::int64_t ldc) noexcept {
  multiply<T, Avx512>(m, n, k, a, lda, packed, beta, c, ldc);
}

template <class T>
__attribute__((target("arch=x86-64-v3"))) void multiply_v3(std::int64_t m, std::int64_t n, std::int64_t k,
                                                           const T* a, std::int64_t lda, const T* packed,
                                                           T beta, T* c, std::int64_t ldc) noexcept {
  multiply<T, Avx2>(m, n, k, a, lda, packed, beta, c, ldc);
}
#endif

template <class T>
void multiply_portable(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda,
                       const T* packed, T beta, T* c, std::int64_t ldc) noexcept {
  multiply<T, Portable>(m, n, k, a, lda, packed, beta, c, ldc);
}

// What this processor uses.
template <class T>
struct Form {
  std::int64_t width;
  Multiply<T> multiply;
};

template <class T>
const Form<T>& form() noexcept {
  static const Form<T> chosen = [] {
#if defined(__x86_64__)
    switch (cpu_simd_level()) {
      case SimdLevel::v4:
        return Form<T>{Layout<T, Avx512>::width, multiply_v4<T>};
      case SimdLevel::v3:
        return Form<T>{Layout<T, Avx2>::width, multiply_v3<T>};
      case SimdLevel::baseline:
        break;
    }
#endif
    return Form<T>{Layout<T, Portable>::width, multiply_portable<T>};
  }();
  return chosen;
}

}  // namespace

template <class T>
std::int64_t packed_size(std::int64_t k, std::int64_t n) noexcept {
  const std::int64_t width = form<T>().width;
  return (n + width - 1) / width * width * k;
}

template <class T>
void pack(bool transposed, std::int64_t k, std::int64_t n, const T* b, std::int64_t ldb, T* packed) noexcept {
  const std::int64_t width = form<T>().width;
  for (std::int64_t j = 0; j < n; j += width) {
    const std::int64_t columns = std::min(width, n - j);
    for (std::int64_t p = 0; p < k; ++p, packed += width) {
      if (transposed) {
        for (std::int64_t i = 0; i < columns; ++i) packed[i] = b[(j + i) * ldb + p];
      } else {
        std::copy(b + p * ldb + j, b + p * ldb + j + columns, packed);
      }
      std::fill(packed + columns, packed + width, T(0));
    }
  }
}

template <class T>
void packed_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda,
                 const T* packed, T beta, T* c, std::int64_t ldc) noexcept {
  form<T>().multiply(m, n, k, a, lda, packed, beta, c, ldc);
}

#define RILL_INSTANTIATE(T)                                                                                \
  template std::int64_t packed_size<T>(std::int64_t, std::int64_t) noexcept;                               \
  template void pack<T>(bool, std::int64_t, std::int64_t, const T*, std::int64_t, T*) noexcept;            \
  template void packed_gemm<T>(std::int64_t, std::int64_t, std::int64_t, const T*, std::int64_t, const T*, \
                               T, T*, std::int64_t) noexcept;
RILL_INSTANTIATE(float)
RILL_INSTANTIATE(double)
#undef RILL_INSTANTIATE

}  // namespace rill::kernels
