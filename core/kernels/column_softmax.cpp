#include <rill/core/kernels/column_softmax.h>

#include <rill/core/kernels/math.h>
#include <rill/core/kernels/simd.h>

#include <limits>

namespace rill::kernels {
namespace {

/// One number for each column.
template <class T>
struct Columns {
  alignas(64) T at[widest_columns];
};

template <class T>
RILL_INLINE void set(Columns<T>& c, std::int64_t n, T value) noexcept {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) c.at[j] = value;
}

template <class T>
RILL_INLINE void greatest(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx,
                          Columns<T>& top) noexcept {
  set(top, n, -std::numeric_limits<T>::infinity());
  for (std::int64_t i = 0; i < m; ++i) {
    const T* const row = x + i * ldx;
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) top.at[j] = row[j] > top.at[j] ? row[j] : top.at[j];
  }
}

template <class T>
RILL_KERNEL void softmax(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx, T* y,
                         std::int64_t ldy) noexcept {
  Columns<T> top, total;
  greatest(m, n, x, ldx, top);
  set(total, n, T(0));
  for (std::int64_t i = 0; i < m; ++i) {
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) {
      const T e = math::exp(x[i * ldx + j] - top.at[j]);
      y[i * ldy + j] = e;
      total.at[j] += e;
    }
  }
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) total.at[j] = T(1) / total.at[j];
  for (std::int64_t i = 0; i < m; ++i) {
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) y[i * ldy + j] *= total.at[j];
  }
}

template <class T>
RILL_KERNEL void log_softmax(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx, T* y,
                             std::int64_t ldy) noexcept {
  Columns<T> top, total;
  greatest(m, n, x, ldx, top);
  set(total, n, T(0));
  for (std::int64_t i = 0; i < m; ++i) {
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) total.at[j] += math::exp(x[i * ldx + j] - top.at[j]);
  }
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) total.at[j] = top.at[j] + math::log(total.at[j]);
  for (std::int64_t i = 0; i < m; ++i) {
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) y[i * ldy + j] = x[i * ldx + j] - total.at[j];
  }
}

template <class T>
RILL_KERNEL void softmax_backward(std::int64_t m, std::int64_t n, const T* y, std::int64_t ldy, const T* dy,
                                  std::int64_t lddy, T beta, T* dx, std::int64_t lddx) noexcept {
  Columns<T> total;
  set(total, n, T(0));
  for (std::int64_t i = 0; i < m; ++i) {
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) total.at[j] += dy[i * lddy + j] * y[i * ldy + j];
  }
  for (std::int64_t i = 0; i < m; ++i) {
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) {
      const T v = y[i * ldy + j] * (dy[i * lddy + j] - total.at[j]);
      dx[i * lddx + j] = v + (beta == T(0) ? T(0) : beta * dx[i * lddx + j]);
    }
  }
}

template <class T>
RILL_KERNEL void log_softmax_backward(std::int64_t m, std::int64_t n, const T* y, std::int64_t ldy,
                                      const T* dy, std::int64_t lddy, T beta, T* dx,
                                      std::int64_t lddx) noexcept {
  Columns<T> total;
  set(total, n, T(0));
  for (std::int64_t i = 0; i < m; ++i) {
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) total.at[j] += dy[i * lddy + j];
  }
  for (std::int64_t i = 0; i < m; ++i) {
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) {
      const T v = dy[i * lddy + j] - math::exp(y[i * ldy + j]) * total.at[j];
      dx[i * lddx + j] = v + (beta == T(0) ? T(0) : beta * dx[i * lddx + j]);
    }
  }
}

}  // namespace

template <class T>
void column_softmax(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx, T* y,
                    std::int64_t ldy) noexcept {
  softmax(m, n, x, ldx, y, ldy);
}

template <class T>
void column_log_softmax(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx, T* y,
                        std::int64_t ldy) noexcept {
  log_softmax(m, n, x, ldx, y, ldy);
}

template <class T>
void column_softmax_backward(std::int64_t m, std::int64_t n, const T* y, std::int64_t ldy, const T* dy,
                             std::int64_t lddy, T beta, T* dx, std::int64_t lddx) noexcept {
  softmax_backward(m, n, y, ldy, dy, lddy, beta, dx, lddx);
}

template <class T>
void column_log_softmax_backward(std::int64_t m, std::int64_t n, const T* y, std::int64_t ldy, const T* dy,
                                 std::int64_t lddy, T beta, T* dx, std::int64_t lddx) noexcept {
  log_softmax_backward(m, n, y, ldy, dy, lddy, beta, dx, lddx);
}

#define RILL_INSTANTIATE(T)                                                                               \
  template void column_softmax(std::int64_t, std::int64_t, const T*, std::int64_t, T*,                    \
                               std::int64_t) noexcept;                                                    \
  template void column_log_softmax(std::int64_t, std::int64_t, const T*, std::int64_t, T*,                \
                                   std::int64_t) noexcept;                                                \
  template void column_softmax_backward(std::int64_t, std::int64_t, const T*, std::int64_t, const T*,     \
                                        std::int64_t, T, T*, std::int64_t) noexcept;                      \
  template void column_log_softmax_backward(std::int64_t, std::int64_t, const T*, std::int64_t, const T*, \
                                            std::int64_t, T, T*, std::int64_t) noexcept;
RILL_INSTANTIATE(float)
RILL_INSTANTIATE(double)
#undef RILL_INSTANTIATE

}  // namespace rill::kernels
