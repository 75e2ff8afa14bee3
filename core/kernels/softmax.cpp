#include <rill/core/kernels/softmax.h>

#include <cmath>
#include <limits>

#include <rill/core/kernels/block_sum.h>
#include <rill/core/kernels/math.h>
#include <rill/core/kernels/reduce.h>
#include <rill/core/kernels/simd.h>

namespace rill::kernels {
namespace {

// y = e^(x - shift); returns the sum. x and y may be the same.
template <class T>
RILL_KERNEL T exp_shifted(const T* x, T shift, T* y, std::int64_t n) noexcept {
  return static_cast<T>(block_sum<T>(n, [x, shift, y](std::int64_t i) RILL_INLINE_LAMBDA {
    const T e = math::exp(x[i] - shift);
    y[i] = e;
    return e;
  }));
}

template <class T>
RILL_KERNEL T sum_exp_shifted(const T* x, T shift, std::int64_t n) noexcept {
  return static_cast<T>(
      block_sum<T>(n, [x, shift](std::int64_t i) RILL_INLINE_LAMBDA { return math::exp(x[i] - shift); }));
}

template <class T>
RILL_KERNEL void scaled_exp_kernel(const T* x, T shift, T scale, T* y, std::int64_t n) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = scale * math::exp(x[i] - shift);
}

template <class T>
RILL_KERNEL void multiply(T factor, T* y, std::int64_t n) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] *= factor;
}

// In this order, since log_total would drown in a large shift.
template <class T>
RILL_KERNEL void subtract_both(const T* x, T shift, T log_total, T* y, std::int64_t n) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - shift) - log_total;
}

template <class T>
RILL_KERNEL void softmax_backward(const T* y, const T* dy, T mean, T beta, T* dx, std::int64_t n) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - mean) + (beta == T(0) ? T(0) : beta * dx[i]);
}

template <class T>
RILL_KERNEL void log_softmax_backward(const T* y, const T* dy, T total, T beta, T* dx,
                                      std::int64_t n) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    dx[i] = (dy[i] - math::exp(y[i]) * total) + (beta == T(0) ? T(0) : beta * dx[i]);
  }
}

}  // namespace

template <class T>
LogSumExp<T> log_sum_exp(const T* x, std::int64_t n) noexcept {
  const T greatest = max(x, n);
  if (std::fabs(greatest) == std::numeric_limits<T>::infinity()) return {greatest, 0};  // x - greatest: NaN
  return {greatest, math::log(sum_exp_shifted(x, greatest, n))};
}

template <class T>
void scaled_exp(const T* x, T shift, T scale, T* y, std::int64_t n) noexcept {
  scaled_exp_kernel(x, shift, scale, y, n);
}

template <class T>
T exp_in_place(T greatest, T* x, std::int64_t n) noexcept {
  return exp_shifted(x, greatest, x, n);
}

template <class T>
void row_softmax(const T* x, T* y, std::int64_t n) noexcept {
  const T total = exp_shifted(x, max(x, n), y, n);
  multiply(T(1) / total, y, n);
}

template <class T>
void row_log_softmax(const T* x, T* y, std::int64_t n) noexcept {
  const T greatest = max(x, n);
  const T total = sum_exp_shifted(x, greatest, n);
  subtract_both(x, greatest, math::log(total), y, n);
}

template <class T>
void row_softmax_backward(const T* y, const T* dy, T beta, T* dx, std::int64_t n) noexcept {
  softmax_backward(y, dy, dot(dy, y, n), beta, dx, n);
}

template <class T>
void row_log_softmax_backward(const T* y, const T* dy, T beta, T* dx, std::int64_t n) noexcept {
  log_softmax_backward(y, dy, sum(dy, n), beta, dx, n);
}

#define RILL_INSTANTIATE(T)                                                                \
  template LogSumExp<T> log_sum_exp<T>(const T*, std::int64_t) noexcept;                   \
  template void scaled_exp<T>(const T*, T, T, T*, std::int64_t) noexcept;                  \
  template T exp_in_place<T>(T, T*, std::int64_t) noexcept;                                \
  template void row_softmax<T>(const T*, T*, std::int64_t) noexcept;                       \
  template void row_log_softmax<T>(const T*, T*, std::int64_t) noexcept;                   \
  template void row_softmax_backward<T>(const T*, const T*, T, T*, std::int64_t) noexcept; \
  template void row_log_softmax_backward<T>(const T*, const T*, T, T*, std::int64_t) noexcept;
RILL_INSTANTIATE(float)
RILL_INSTANTIATE(double)
#undef RILL_INSTANTIATE

}  // namespace rill::kernels
