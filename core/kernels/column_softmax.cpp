#include <rill/core/kernels/column_softmax.h>

#include <rill/core/kernels/math.h>
#include <rill/core/kernels/simd.h>

#include <algorithm>
#include <limits>

namespace rill::kernels {
namespace {

/// One value per column.
template <class T>
struct Columns {
  alignas(64) T at[most_columns];
};

/// sums[j] = Σ_i term(i, j): blocks of rows in T, which vectorize, accumulated in float64.
template <class T, class F>
RILL_INLINE void sum_columns(std::int64_t m, std::int64_t n, Columns<T>& sums, const F& term) noexcept {
  constexpr std::int64_t block = 128;
  Columns<double> total;
  for (std::int64_t j = 0; j < n; ++j) total.at[j] = 0;
  for (std::int64_t begin = 0; begin < m; begin += block) {
    for (std::int64_t j = 0; j < n; ++j) sums.at[j] = 0;
    for (std::int64_t i = begin, end = std::min(begin + block, m); i < end; ++i) {
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) sums.at[j] += term(i, j);
    }
    for (std::int64_t j = 0; j < n; ++j) total.at[j] += static_cast<double>(sums.at[j]);
  }
  for (std::int64_t j = 0; j < n; ++j) sums.at[j] = static_cast<T>(total.at[j]);
}

template <class T, bool log>
RILL_KERNEL void forward(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx, T* y,
                         std::int64_t ldy) noexcept {
  Columns<T> top, total;
  for (std::int64_t j = 0; j < n; ++j) top.at[j] = -std::numeric_limits<T>::infinity();
  for (std::int64_t i = 0; i < m; ++i) {
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) top.at[j] = x[i * ldx + j] > top.at[j] ? x[i * ldx + j] : top.at[j];
  }
  sum_columns(m, n, total, [&](std::int64_t i, std::int64_t j) RILL_INLINE_LAMBDA {
    const T e = math::exp(x[i * ldx + j] - top.at[j]);
    if constexpr (!log) y[i * ldy + j] = e;
    return e;
  });
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) total.at[j] = log ? math::log(total.at[j]) : T(1) / total.at[j];
  for (std::int64_t i = 0; i < m; ++i) {
    const T* const from = log ? x + i * ldx : y + i * ldy;
    T* const to = y + i * ldy;
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j)
      to[j] = log ? (from[j] - top.at[j]) - total.at[j] : from[j] * total.at[j];
  }
}

template <class T, bool log>
RILL_KERNEL void backward(std::int64_t m, std::int64_t n, const T* y, std::int64_t ldy, const T* dy,
                          std::int64_t lddy, T beta, T* dx, std::int64_t lddx) noexcept {
  Columns<T> total;
  sum_columns(m, n, total, [&](std::int64_t i, std::int64_t j) RILL_INLINE_LAMBDA {
    return log ? dy[i * lddy + j] : dy[i * lddy + j] * y[i * ldy + j];
  });
  for (std::int64_t i = 0; i < m; ++i) {
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) {
      const T from = y[i * ldy + j], g = dy[i * lddy + j];
      const T v = log ? g - math::exp(from) * total.at[j] : from * (g - total.at[j]);
      dx[i * lddx + j] = v + (beta == T(0) ? T(0) : beta * dx[i * lddx + j]);
    }
  }
}

}  // namespace

template <class T, bool log>
void column_softmax(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx, T* y,
                    std::int64_t ldy) noexcept {
  forward<T, log>(m, n, x, ldx, y, ldy);
}

template <class T, bool log>
void column_softmax_backward(std::int64_t m, std::int64_t n, const T* y, std::int64_t ldy, const T* dy,
                             std::int64_t lddy, T beta, T* dx, std::int64_t lddx) noexcept {
  backward<T, log>(m, n, y, ldy, dy, lddy, beta, dx, lddx);
}

#define RILL_INSTANTIATE(T, log)                                                                    \
  template void column_softmax<T, log>(std::int64_t, std::int64_t, const T*, std::int64_t, T*,      \
                                       std::int64_t) noexcept;                                      \
  template void column_softmax_backward<T, log>(std::int64_t, std::int64_t, const T*, std::int64_t, \
                                                const T*, std::int64_t, T, T*, std::int64_t) noexcept;
RILL_INSTANTIATE(float, false)
RILL_INSTANTIATE(float, true)
RILL_INSTANTIATE(double, false)
RILL_INSTANTIATE(double, true)
#undef RILL_INSTANTIATE

}  // namespace rill::kernels
