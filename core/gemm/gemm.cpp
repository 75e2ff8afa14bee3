#include <rill/core/gemm/gemm.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include <rill/core/error.h>
#include <rill/core/gemm/amx.h>
#include <rill/core/gemm/blas.h>
#include <rill/core/gemm/packed.h>
#include <rill/core/gemm/thin.h>
#include <rill/core/memory.h>
#include <rill/core/parallel.h>

namespace rill {
namespace {

// Up to here OpenBLAS has kernels that pack nothing on AVX-512, unless B alone is transposed; our own have no
// use for more than one thread either, at some 10 microseconds.
constexpr std::int64_t small_product = 1'000'000;  // multiplications

// With fewer rows or columns than this, packing the other operand costs more than it gains.
constexpr std::int64_t thin_side = 16;

// Up to so many rows of A, a B that is stored by rows is read where it lies.
constexpr std::int64_t few_rows = 32;

// Tiles gain more than it costs to split the operands for them.
template <class T>
bool worth_tiles(std::int64_t m, std::int64_t n, std::int64_t k) noexcept {
  constexpr std::int64_t shorter = 64;
  constexpr std::int64_t longer = 128;
  constexpr std::int64_t depth = 32;
  return std::is_same_v<T, float> && std::min(m, n) >= shorter && std::max(m, n) >= longer && k >= depth &&
         kernels::has_amx();
}

// A product C = op(A) op(B) + beta C, and its parts.
template <class T>
struct Product {
  bool ta, tb;
  std::int64_t m, n, k;
  const T* a;
  std::int64_t lda;
  const T* b;
  std::int64_t ldb;
  T beta;
  T* c;
  std::int64_t ldc;
  bool on_tiles;  // of the whole product: its parts have the same bits

  bool by_rows() const { return m > n; }
  std::int64_t length() const { return std::max(m, n); }

  // Rows or columns [first, last) of C, along the longer side.
  Product part(std::int64_t first, std::int64_t last) const {
    Product p = *this;
    if (by_rows()) {
      p.m = last - first;
      p.a += ta ? first : first * lda;
      p.c += first * ldc;
    } else {
      p.n = last - first;
      p.b += tb ? first * ldb : first;
      p.c += first;
    }
    return p;
  }

  void by_blas() const { kernels::gemm(ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc); }

  void by_blocks() const {
    if constexpr (std::is_same_v<T, float>) {
      if (on_tiles) {
        const memory::Block workspace(static_cast<std::size_t>(kernels::amx_workspace()));
        return kernels::amx_gemm(ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc, workspace.data());
      }
    }
    const memory::Block workspace(static_cast<std::size_t>(kernels::blocked_workspace<T>()) * sizeof(T));
    kernels::blocked_gemm(ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc, static_cast<T*>(workspace.data()));
  }

  // Whether packing costs more than it gains.
  bool is_thin() const { return std::min(m, n) < thin_side || (!ta && !tb && m <= few_rows); }

  // One that is thin.
  void by_thin() const {
    if (ta || m == 1 || m > few_rows || (tb && m >= thin_side)) {
      by_blas();
    } else if (tb) {
      kernels::thin_gemm_transposed(m, n, k, a, lda, b, ldb, beta, c, ldc);
    } else {
      kernels::thin_gemm(m, n, k, a, lda, b, ldb, beta, c, ldc);
    }
  }
};

// In parts that depend on the sizes alone, since BLAS may add in another order for another size.
template <class T>
void thin_product(const Product<T>& product) {
  constexpr std::int64_t shortest = 128;
  constexpr std::int64_t most_parts = 16;
  const std::int64_t parts = std::clamp(product.length() / shortest, std::int64_t{1}, most_parts);
  const std::int64_t length = ((product.length() + parts - 1) / parts + 15) / 16 * 16;
  parallel_for((product.length() + length - 1) / length, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      product.part(i * length, std::min((i + 1) * length, product.length())).by_thin();
    }
  });
}

template <class T>
void large_product(const Product<T>& product) {
  // Every part packs the operand that it shares with the others, so there should be few; twice as many as
  // threads let a free one help out. Borders are those of the packed panels and of the tiles.
  constexpr std::int64_t unit = 96;
  constexpr std::int64_t shortest = 2;
  const std::int64_t units = (product.length() + unit - 1) / unit;
  const std::int64_t parts = 2 * num_threads();
  parallel_for(units, std::max(shortest, (units + parts - 1) / parts),
               [&](std::int64_t first, std::int64_t last) {
                 product.part(first * unit, std::min(last * unit, product.length())).by_blocks();
               });
}

}  // namespace

template <class T>
void parallel_gemm(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
                   std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) {
  const std::int64_t largest = std::max({m, n, k, lda, ldb, ldc});
  check(largest <= std::numeric_limits<std::int32_t>::max(),
        "matmul: a size or row distance of {} is beyond the 2147483647 of BLAS; split the product", largest);
  const Product<T> product{ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc, worth_tiles<T>(m, n, k)};
  const std::int64_t shorter = std::min(m, n);
  const bool thin = product.is_thin();
  // Divided, because m n k may overflow.
  const bool small = shorter <= 0 || k <= 0 || shorter <= small_product / product.length() / k;
  if (small && (thin || k < thin_side || ta || !tb)) {
    product.by_blas();
  } else if (small) {
    product.by_blocks();
  } else if (thin) {
    thin_product(product);
  } else {
    large_product(product);
  }
}

template void parallel_gemm<float>(bool, bool, std::int64_t, std::int64_t, std::int64_t, const float*,
                                   std::int64_t, const float*, std::int64_t, float, float*, std::int64_t);
template void parallel_gemm<double>(bool, bool, std::int64_t, std::int64_t, std::int64_t, const double*,
                                    std::int64_t, const double*, std::int64_t, double, double*, std::int64_t);

}  // namespace rill
