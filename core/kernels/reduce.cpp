#include <rill/core/kernels/reduce.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <rill/core/kernels/block_sum.h>
#include <rill/core/kernels/simd.h>

namespace rill::kernels {
namespace {

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

template <class T>
RILL_KERNEL T sum_kernel(const T* x, std::int64_t n) noexcept {
  return static_cast<T>(block_sum<T>(n, [x](std::int64_t i) RILL_INLINE_LAMBDA { return x[i]; }));
}

template <class T>
RILL_KERNEL T dot_kernel(const T* x, const T* y, std::int64_t n) noexcept {
  return static_cast<T>(block_sum<T>(n, [x, y](std::int64_t i) RILL_INLINE_LAMBDA { return x[i] * y[i]; }));
}

template <class T>
RILL_KERNEL T deviations_kernel(const T* x, T mean, std::int64_t n) noexcept {
  return static_cast<T>(block_sum<T>(
      n, [x, mean](std::int64_t i) RILL_INLINE_LAMBDA { return (x[i] - mean) * (x[i] - mean); }));
}

template <class T>
RILL_KERNEL T sum_abs_kernel(const T* x, std::int64_t n) noexcept {
  return static_cast<T>(block_sum<T>(n, [x](std::int64_t i) RILL_INLINE_LAMBDA { return std::fabs(x[i]); }));
}

// The smallest f(x[i]); NaN if any is NaN.
template <class T, class F>
RILL_INLINE T least_of(const T* x, std::int64_t n, F f) noexcept {
  T least = infinity<T>;
  T not_a_number = 0;
#pragma omp simd reduction(min : least) reduction(+ : not_a_number)
  for (std::int64_t i = 0; i < n; ++i) {
    const T v = f(x[i]);
    least = v < least ? v : least;
    not_a_number += v != v ? v : T(0);
  }
  return not_a_number != not_a_number ? not_a_number : least;
}

template <class T>
RILL_KERNEL T max_kernel(const T* x, std::int64_t n) noexcept {
  return -least_of(x, n, [](T v) RILL_INLINE_LAMBDA { return -v; });
}

template <class T>
RILL_KERNEL T min_kernel(const T* x, std::int64_t n) noexcept {
  return least_of(x, n, [](T v) RILL_INLINE_LAMBDA { return v; });
}

template <class T>
RILL_KERNEL T max_abs_kernel(const T* x, std::int64_t n) noexcept {
  return -least_of(x, n, [](T v) RILL_INLINE_LAMBDA { return -std::fabs(v); });
}

template <class T>
RILL_KERNEL T min_abs_kernel(const T* x, std::int64_t n) noexcept {
  return least_of(x, n, [](T v) RILL_INLINE_LAMBDA { return std::fabs(v); });
}

template <class T>
RILL_KERNEL std::int64_t count_kernel(const T* x, std::int64_t n, T value) noexcept {
  std::int64_t count = 0;
#pragma omp simd reduction(+ : count)
  for (std::int64_t i = 0; i < n; ++i) count += x[i] == value ? 1 : 0;
  return count;
}

template <class T>
RILL_KERNEL T product_kernel(const T* x, std::int64_t n) noexcept {
  T total = 1;
#pragma omp simd reduction(* : total)
  for (std::int64_t i = 0; i < n; ++i) total *= x[i];
  return total;
}

constexpr std::int64_t row_group = 8;
constexpr std::int64_t most_columns = 256;

/// total[j] += the sum of column j of m rows; eight are added in T before they go into `total`.
template <class T, class Total, class RowAt>
RILL_INLINE void add_rows(std::int64_t m, std::int64_t n, RowAt row_at, Total* total) noexcept {
  std::int64_t i = 0;
  for (; i + row_group <= m; i += row_group) {
    const T *a = row_at(i), *b = row_at(i + 1), *c = row_at(i + 2), *d = row_at(i + 3);
    const T *e = row_at(i + 4), *f = row_at(i + 5), *g = row_at(i + 6), *h = row_at(i + 7);
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) {
      const T low = (a[j] + b[j]) + (c[j] + d[j]), high = (e[j] + f[j]) + (g[j] + h[j]);
      total[j] += static_cast<Total>(low + high);
    }
  }
  for (; i < m; ++i) {
    const T* a = row_at(i);
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) total[j] += static_cast<Total>(a[j]);
  }
}

/// y = beta y + the sum of m rows; y is the total itself for few rows.
template <class T, class RowAt>
RILL_INLINE void sum_rows_at(std::int64_t m, std::int64_t n, RowAt row_at, T beta, T* y) noexcept {
  constexpr std::int64_t few_rows = 32;
  if (beta == T(0)) {
    for (std::int64_t j = 0; j < n; ++j) y[j] = T(0);
  } else if (beta != T(1)) {
    for (std::int64_t j = 0; j < n; ++j) y[j] *= beta;
  }
  if (m <= few_rows) return add_rows<T>(m, n, row_at, y);
  for (std::int64_t begin = 0; begin < n; begin += most_columns) {
    const std::int64_t columns = std::min(most_columns, n - begin);
    double total[most_columns];
    for (std::int64_t j = 0; j < columns; ++j) total[j] = static_cast<double>(y[begin + j]);
    add_rows<T>(
        m, columns, [=](std::int64_t i) RILL_INLINE_LAMBDA { return row_at(i) + begin; }, total);
    for (std::int64_t j = 0; j < columns; ++j) y[begin + j] = static_cast<T>(total[j]);
  }
}

template <class T>
RILL_KERNEL void sum_rows_kernel(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx, T beta,
                                 T* y) noexcept {
  sum_rows_at(
      m, n, [x, ldx](std::int64_t i) RILL_INLINE_LAMBDA { return x + i * ldx; }, beta, y);
}

template <class T>
RILL_KERNEL void sum_gathered_kernel(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx,
                                     const std::int64_t* at, T beta, T* y) noexcept {
  sum_rows_at(
      m, n, [x, ldx, at](std::int64_t i) RILL_INLINE_LAMBDA { return x + at[i] * ldx; }, beta, y);
}

}  // namespace

template <class T>
T sum(const T* x, std::int64_t n) noexcept {
  return sum_kernel(x, n);
}

template <class T>
T dot(const T* x, const T* y, std::int64_t n) noexcept {
  return dot_kernel(x, y, n);
}

template <class T>
T sum_squared_deviations(const T* x, T mean, std::int64_t n) noexcept {
  return deviations_kernel(x, mean, n);
}

template <class T>
T sum_abs(const T* x, std::int64_t n) noexcept {
  return sum_abs_kernel(x, n);
}

template <class T>
T sum_abs_pow(const T* x, T p, std::int64_t n) noexcept {
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += static_cast<double>(std::pow(std::fabs(x[i]), p));
  return static_cast<T>(total);
}

template <class T>
void sum_rows(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx, T beta, T* y) noexcept {
  sum_rows_kernel(m, n, x, ldx, beta, y);
}

template <class T>
void sum_gathered_rows(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx, const std::int64_t* at,
                       T beta, T* y) noexcept {
  sum_gathered_kernel(m, n, x, ldx, at, beta, y);
}

template <class T>
T product(const T* x, std::int64_t n) noexcept {
  return product_kernel(x, n);
}

template <class T>
void product_backward(const T* x, T dy, T* dx, std::int64_t n) noexcept {
  T before = dy;
  for (std::int64_t i = 0; i < n; ++i) {
    dx[i] = before;
    before *= x[i];
  }
  T behind = 1;
  for (std::int64_t i = n - 1; i >= 0; --i) {
    dx[i] *= behind;
    behind *= x[i];
  }
}

template <class T>
T max(const T* x, std::int64_t n) noexcept {
  return max_kernel(x, n);
}

template <class T>
T min(const T* x, std::int64_t n) noexcept {
  return min_kernel(x, n);
}

template <class T>
T max_abs(const T* x, std::int64_t n) noexcept {
  return n == 0 ? T(0) : max_abs_kernel(x, n);
}

template <class T>
T min_abs(const T* x, std::int64_t n) noexcept {
  return min_abs_kernel(x, n);
}

template <class T>
std::int64_t first_equal(const T* x, std::int64_t n, T value) noexcept {
  constexpr std::int64_t block = 512;
  const bool wants_nan = value != value;
  std::int64_t i = 0;
  while (!wants_nan && n - i > block && count_kernel(x + i, block, value) == 0) i += block;
  for (; i < n; ++i) {
    if (wants_nan ? x[i] != x[i] : x[i] == value) return i;
  }
  return -1;
}

template <class T>
std::int64_t count_equal(const T* x, std::int64_t n, T value) noexcept {
  return count_kernel(x, n, value);
}

#define RILL_INSTANTIATE(T)                                                                      \
  template T sum<T>(const T*, std::int64_t) noexcept;                                            \
  template T dot<T>(const T*, const T*, std::int64_t) noexcept;                                  \
  template T sum_squared_deviations<T>(const T*, T, std::int64_t) noexcept;                      \
  template T sum_abs<T>(const T*, std::int64_t) noexcept;                                        \
  template T sum_abs_pow<T>(const T*, T, std::int64_t) noexcept;                                 \
  template void sum_rows<T>(std::int64_t, std::int64_t, const T*, std::int64_t, T, T*) noexcept; \
  template void sum_gathered_rows<T>(std::int64_t, std::int64_t, const T*, std::int64_t,         \
                                     const std::int64_t*, T, T*) noexcept;                       \
  template T product<T>(const T*, std::int64_t) noexcept;                                        \
  template void product_backward<T>(const T*, T, T*, std::int64_t) noexcept;                     \
  template T max<T>(const T*, std::int64_t) noexcept;                                            \
  template T min<T>(const T*, std::int64_t) noexcept;                                            \
  template T max_abs<T>(const T*, std::int64_t) noexcept;                                        \
  template T min_abs<T>(const T*, std::int64_t) noexcept;                                        \
  template std::int64_t first_equal<T>(const T*, std::int64_t, T) noexcept;                      \
  template std::int64_t count_equal<T>(const T*, std::int64_t, T) noexcept;
RILL_INSTANTIATE(float)
RILL_INSTANTIATE(double)
#undef RILL_INSTANTIATE

}  // namespace rill::kernels
