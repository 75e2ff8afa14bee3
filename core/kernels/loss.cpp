#include <rill/core/kernels/loss.h>

#include <rill/core/kernels/block_sum.h>
#include <rill/core/kernels/math.h>
#include <rill/core/kernels/simd.h>

namespace rill::kernels {
namespace {

template <bool has_weight, class T>
RILL_KERNEL T gap(const T* x, T greatest, const T* weight, std::int64_t n) noexcept {
  return static_cast<T>(block_sum<T>(n, [=](std::int64_t i) RILL_INLINE_LAMBDA {
    return has_weight ? weight[i] * (greatest - x[i]) : greatest - x[i];
  }));
}

template <bool has_weight, class T>
RILL_KERNEL void backward(const T* x, T greatest, T log_sum, T scale, T b, const T* weight, T beta, T* dx,
                          std::int64_t n) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T v = scale * math::exp((x[i] - greatest) - log_sum) - (has_weight ? b * weight[i] : b);
    dx[i] = v + (beta == T(0) ? T(0) : beta * dx[i]);
  }
}

template <class T>
RILL_KERNEL void add(const T* bias, T* x, std::int64_t n) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) x[i] += bias[i];
}

template <bool has_weight, class T>
RILL_KERNEL void scale_kernel(T scale, T b, const T* weight, T* x, std::int64_t n) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) x[i] = scale * x[i] - (has_weight ? b * weight[i] : b);
}

}  // namespace

template <class T>
T weighted_gap(const T* x, T greatest, const T* weight, std::int64_t n) noexcept {
  return weight ? gap<true>(x, greatest, weight, n) : gap<false>(x, greatest, weight, n);
}

template <class T>
void cross_entropy_backward(const T* x, LogSumExp<T> z, T scale, T b, const T* weight, T beta, T* dx,
                            std::int64_t n) noexcept {
  const auto run = weight ? backward<true, T> : backward<false, T>;
  run(x, z.greatest, z.log_sum, scale, b, weight, beta, dx, n);
}

template <class T>
void add_bias(const T* bias, T* x, std::int64_t n) noexcept {
  add(bias, x, n);
}

template <class T>
void scale_and_subtract(T scale, T b, const T* weight, T* x, std::int64_t n) noexcept {
  const auto run = weight ? scale_kernel<true, T> : scale_kernel<false, T>;
  run(scale, b, weight, x, n);
}

#define RILL_INSTANTIATE(T)                                                              \
  template T weighted_gap<T>(const T*, T, const T*, std::int64_t) noexcept;              \
  template void cross_entropy_backward<T>(const T*, LogSumExp<T>, T, T, const T*, T, T*, \
                                          std::int64_t) noexcept;                        \
  template void add_bias<T>(const T*, T*, std::int64_t) noexcept;                        \
  template void scale_and_subtract<T>(T, T, const T*, T*, std::int64_t) noexcept;
RILL_INSTANTIATE(float)
RILL_INSTANTIATE(double)
#undef RILL_INSTANTIATE

}  // namespace rill::kernels
