#include <rill/core/kernels/statistics.h>

#include <rill/core/kernels/math.h>
#include <rill/core/kernels/reduce.h>
#include <rill/core/kernels/simd.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace rill::kernels {
namespace {

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

// The least and the greatest of f(x[i]), NaN if one of them is.
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
RILL_KERNEL T min_kernel(const T* x, std::int64_t n) noexcept {
  return least_of(x, n, [](T v) RILL_INLINE_LAMBDA { return v; });
}

template <class T>
RILL_KERNEL T min_abs_kernel(const T* x, std::int64_t n) noexcept {
  return least_of(x, n, [](T v) RILL_INLINE_LAMBDA { return std::fabs(v); });
}

template <class T>
RILL_KERNEL T max_abs_kernel(const T* x, std::int64_t n) noexcept {
  return -least_of(x, n, [](T v) RILL_INLINE_LAMBDA { return -std::fabs(v); });
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

template <class T>
RILL_KERNEL T deviations_kernel(const T* x, T mean, std::int64_t n) noexcept {
  T total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) total += (x[i] - mean) * (x[i] - mean);
  return total;
}

template <class T>
RILL_KERNEL T sum_abs_kernel(const T* x, std::int64_t n) noexcept {
  T total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) total += std::fabs(x[i]);
  return total;
}

template <class T>
RILL_KERNEL T sum_exp_kernel(const T* x, T shift, std::int64_t n) noexcept {
  T total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) total += math::exp(x[i] - shift);
  return total;
}

template <class T>
RILL_KERNEL void scaled_exp_kernel(const T* x, T shift, T scale, T* y, std::int64_t n) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = scale * math::exp(x[i] - shift);
}

// Blocks are short enough for plain summation; their sums are added in double.
template <class T, class Part>
T sum_of_blocks(std::int64_t n, const Part& part) noexcept {
  constexpr std::int64_t block = 1024;
  if (n <= block) return part(0, n);
  double total = 0;
  for (std::int64_t i = 0; i < n; i += block) total += part(i, std::min(block, n - i));
  return static_cast<T>(total);
}

}  // namespace

template <class T>
T min(const T* x, std::int64_t n) noexcept {
  return min_kernel(x, n);
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
T sum_squared_deviations(const T* x, T mean, std::int64_t n) noexcept {
  return sum_of_blocks<T>(
      n, [&](std::int64_t begin, std::int64_t size) { return deviations_kernel(x + begin, mean, size); });
}

template <class T>
T sum_abs(const T* x, std::int64_t n) noexcept {
  return sum_of_blocks<T>(
      n, [&](std::int64_t begin, std::int64_t size) { return sum_abs_kernel(x + begin, size); });
}

template <class T>
T sum_abs_pow(const T* x, T p, std::int64_t n) noexcept {
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += static_cast<double>(std::pow(std::fabs(x[i]), p));
  return static_cast<T>(total);
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
LogSumExp<T> log_sum_exp(const T* x, std::int64_t n) noexcept {
  const T greatest = max(x, n);
  if (std::fabs(greatest) == infinity<T>) return {greatest, 0};  // where x - greatest would be NaN
  const T total = sum_of_blocks<T>(
      n, [&](std::int64_t begin, std::int64_t size) { return sum_exp_kernel(x + begin, greatest, size); });
  return {greatest, math::log(total)};
}

template <class T>
void scaled_exp(const T* x, T shift, T scale, T* y, std::int64_t n) noexcept {
  scaled_exp_kernel(x, shift, scale, y, n);
}

#define RILL_INSTANTIATE(T)                                                  \
  template T min<T>(const T*, std::int64_t) noexcept;                        \
  template std::int64_t first_equal<T>(const T*, std::int64_t, T) noexcept;  \
  template std::int64_t count_equal<T>(const T*, std::int64_t, T) noexcept;  \
  template T product<T>(const T*, std::int64_t) noexcept;                    \
  template void product_backward<T>(const T*, T, T*, std::int64_t) noexcept; \
  template T sum_squared_deviations<T>(const T*, T, std::int64_t) noexcept;  \
  template T sum_abs<T>(const T*, std::int64_t) noexcept;                    \
  template T sum_abs_pow<T>(const T*, T, std::int64_t) noexcept;             \
  template T max_abs<T>(const T*, std::int64_t) noexcept;                    \
  template T min_abs<T>(const T*, std::int64_t) noexcept;                    \
  template LogSumExp<T> log_sum_exp<T>(const T*, std::int64_t) noexcept;     \
  template void scaled_exp<T>(const T*, T, T, T*, std::int64_t) noexcept;
RILL_INSTANTIATE(float)
RILL_INSTANTIATE(double)
#undef RILL_INSTANTIATE

}  // namespace rill::kernels
