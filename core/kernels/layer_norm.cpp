#include <rill/core/kernels/layer_norm.h>

#include <rill/core/kernels/block_sum.h>
#include <rill/core/kernels/reduce.h>
#include <rill/core/kernels/simd.h>

#include <cmath>

namespace rill::kernels {
namespace {

template <bool has_weight, bool has_bias, class T>
RILL_KERNEL void normalize(const T* x, T mean, T scale, const T* weight, const T* bias, T* y,
                           std::int64_t n) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    T v = (x[i] - mean) * scale;
    if (has_weight) v *= weight[i];
    if (has_bias) v += bias[i];
    y[i] = v;
  }
}

template <class T>
struct Means {
  T g;
  T g_times_x;
};

template <bool has_weight, class T>
RILL_KERNEL Means<T> gradient_means(const T* x, T mean, T scale, const T* weight, const T* dy,
                                    std::int64_t n) noexcept {
  const auto g = [=](std::int64_t i) RILL_INLINE_LAMBDA { return has_weight ? dy[i] * weight[i] : dy[i]; };
  const double first = block_sum<T>(n, g);
  const double second =
      block_sum<T>(n, [=](std::int64_t i) RILL_INLINE_LAMBDA { return g(i) * ((x[i] - mean) * scale); });
  return {static_cast<T>(first / static_cast<double>(n)), static_cast<T>(second / static_cast<double>(n))};
}

template <bool has_weight, class T>
RILL_KERNEL void normalize_backward(const T* x, T mean, T scale, const T* weight, const T* dy, Means<T> means,
                                    T beta, T* dx, std::int64_t n) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = has_weight ? dy[i] * weight[i] : dy[i];
    const T v = scale * (g - means.g - (x[i] - mean) * scale * means.g_times_x);
    dx[i] = v + (beta == T(0) ? T(0) : beta * dx[i]);
  }
}

template <class T>
RILL_KERNEL void add_normalized_kernel(const T* x, T mean, T scale, const T* dy, T* dweight,
                                       std::int64_t n) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dweight[i] += dy[i] * ((x[i] - mean) * scale);
}

}  // namespace

template <class T>
RowMoments<T> row_moments(const T* x, T eps, std::int64_t n) noexcept {
  const T mean = sum(x, n) / static_cast<T>(n);
  const T variance = sum_squared_deviations(x, mean, n) / static_cast<T>(n);
  return {mean, T(1) / std::sqrt(variance + eps)};
}

template <class T>
void normalize_row(const T* x, RowMoments<T> m, const T* weight, const T* bias, T* y,
                   std::int64_t n) noexcept {
  const auto run = weight ? (bias ? normalize<true, true, T> : normalize<true, false, T>)
                          : (bias ? normalize<false, true, T> : normalize<false, false, T>);
  run(x, m.mean, m.inverse_deviation, weight, bias, y, n);
}

template <class T>
void normalize_row_backward(const T* x, RowMoments<T> m, const T* weight, const T* dy, T beta, T* dx,
                            std::int64_t n) noexcept {
  const T scale = m.inverse_deviation;
  if (weight) {
    const Means<T> means = gradient_means<true>(x, m.mean, scale, weight, dy, n);
    normalize_backward<true>(x, m.mean, scale, weight, dy, means, beta, dx, n);
  } else {
    const Means<T> means = gradient_means<false>(x, m.mean, scale, weight, dy, n);
    normalize_backward<false>(x, m.mean, scale, weight, dy, means, beta, dx, n);
  }
}

template <class T>
void add_normalized(const T* x, RowMoments<T> m, const T* dy, T* dweight, std::int64_t n) noexcept {
  add_normalized_kernel(x, m.mean, m.inverse_deviation, dy, dweight, n);
}

#define RILL_INSTANTIATE(T)                                                                               \
  template RowMoments<T> row_moments<T>(const T*, T, std::int64_t) noexcept;                              \
  template void normalize_row<T>(const T*, RowMoments<T>, const T*, const T*, T*, std::int64_t) noexcept; \
  template void normalize_row_backward<T>(const T*, RowMoments<T>, const T*, const T*, T, T*,             \
                                          std::int64_t) noexcept;                                         \
  template void add_normalized<T>(const T*, RowMoments<T>, const T*, T*, std::int64_t) noexcept;
RILL_INSTANTIATE(float)
RILL_INSTANTIATE(double)
#undef RILL_INSTANTIATE

}  // namespace rill::kernels
