/// Long sums in kernels: short blocks in T, which vectorize, accumulated in float64. The error is that of one
/// block, whatever their number.
#pragma once

#include <algorithm>
#include <cstdint>

#include <rill/core/kernels/simd.h>

namespace rill::kernels {

/// Σ term(i) over i < n, inside a RILL_KERNEL; term is a RILL_INLINE_LAMBDA.
template <class T, class F>
RILL_INLINE double block_sum(std::int64_t n, F term) noexcept {
  constexpr std::int64_t block = 128;
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t end = std::min(begin + block, n);
    T part = 0;
#pragma omp simd reduction(+ : part)
    for (std::int64_t i = begin; i < end; ++i) part += term(i);
    total += static_cast<double>(part);
  }
  return total;
}

}  // namespace rill::kernels
