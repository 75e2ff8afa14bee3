#include <rill/core/gemm.h>

#include <algorithm>
#include <limits>

#include <rill/core/error.h>
#include <rill/core/kernels/gemm.h>
#include <rill/core/parallel.h>

namespace rill {
namespace {

constexpr std::int64_t small_product = std::int64_t{1} << 20;  // multiplications, some 15 microseconds
constexpr std::int64_t shortest_block = 128;
constexpr std::int64_t most_blocks = 16;

// The length of the blocks that `size` rows or columns are cut into: a multiple of 16, and a power of two of them.
std::int64_t block_length(std::int64_t size) {
  std::int64_t blocks = 1;
  while (blocks < most_blocks && size >= 2 * blocks * shortest_block) blocks *= 2;
  return ((size + blocks - 1) / blocks + 15) / 16 * 16;
}

}  // namespace

template <class T>
void parallel_gemm(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
                   std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) {
  const std::int64_t largest = std::max({m, n, k, lda, ldb, ldc});
  check(largest <= std::numeric_limits<std::int32_t>::max(),
        "matmul: a size or row distance of {} is beyond the 2147483647 of BLAS; split the product", largest);
  const std::int64_t longer = std::max(m, n);
  // Divided, because m * n * k may overflow.
  if (longer < 2 * shortest_block || k <= 0 || std::min(m, n) <= small_product / longer / k) {
    return kernels::gemm(ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc);
  }
  const bool by_rows = m > n;
  const std::int64_t length = block_length(longer);
  parallel_for((longer + length - 1) / length, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t block = first; block < last; ++block) {
      const std::int64_t at = block * length;
      const std::int64_t size = std::min(length, longer - at);
      if (by_rows) {
        kernels::gemm(ta, tb, size, n, k, a + (ta ? at : at * lda), lda, b, ldb, beta, c + at * ldc, ldc);
      } else {
        kernels::gemm(ta, tb, m, size, k, a, lda, b + (tb ? at * ldb : at), ldb, beta, c + at, ldc);
      }
    }
  });
}

template void parallel_gemm<float>(bool, bool, std::int64_t, std::int64_t, std::int64_t, const float*,
                                   std::int64_t, const float*, std::int64_t, float, float*, std::int64_t);
template void parallel_gemm<double>(bool, bool, std::int64_t, std::int64_t, std::int64_t, const double*,
                                    std::int64_t, const double*, std::int64_t, double, double*, std::int64_t);

}  // namespace rill
