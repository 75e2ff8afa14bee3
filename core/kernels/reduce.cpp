#include <rill/core/kernels/reduce.h>

#include <algorithm>
#include <limits>

#include <rill/core/kernels/math.h>
#include <rill/core/kernels/simd.h>

namespace rill::kernels {
namespace {

constexpr std::int64_t block = 512;

template <class T>
RILL_KERNEL T block_sum(const T* x, std::int64_t n) noexcept {
  T total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) total += x[i];
  return total;
}

template <class T>
RILL_KERNEL T block_dot(const T* x, const T* y, std::int64_t n) noexcept {
  T total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) total += x[i] * y[i];
  return total;
}

// part(begin, size) is the sum of one block; the blocks are added as a balanced tree.
template <class T, class Part>
T pairwise(std::int64_t begin, std::int64_t n, const Part& part) noexcept {
  if (n <= block) return part(begin, n);
  const std::int64_t half = (n / 2 + block - 1) / block * block;
  return pairwise<T>(begin, half, part) + pairwise<T>(begin + half, n - half, part);
}

template <class T>
RILL_KERNEL T max_kernel(const T* x, std::int64_t n) noexcept {
  T greatest = -std::numeric_limits<T>::infinity();
  T not_a_number = 0;
#pragma omp simd reduction(max : greatest) reduction(+ : not_a_number)
  for (std::int64_t i = 0; i < n; ++i) {
    greatest = x[i] > greatest ? x[i] : greatest;
    not_a_number += x[i] != x[i] ? x[i] : T(0);
  }
  return not_a_number != not_a_number ? not_a_number : greatest;
}

// y[j] += the sum of column j.
template <class T>
RILL_KERNEL void add_rows(std::int64_t rows, std::int64_t n, const T* x, std::int64_t ldx, T* y) noexcept {
  std::int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const T* a = x + i * ldx;
    const T* b = a + ldx;
    const T* c = b + ldx;
    const T* d = c + ldx;
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) y[j] += (a[j] + b[j]) + (c[j] + d[j]);
  }
  for (; i < rows; ++i) {
    const T* a = x + i * ldx;
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) y[j] += a[j];
  }
}

template <class T>
void scale(std::int64_t n, T beta, T* y) noexcept {
  if (beta == T(0)) {
    std::fill(y, y + n, T(0));
  } else if (beta != T(1)) {
    for (std::int64_t j = 0; j < n; ++j) y[j] *= beta;
  }
}

// y = exp(x - shift); returns the sum.
template <class T>
RILL_KERNEL T exp_shifted(const T* x, T shift, T* y, std::int64_t n) noexcept {
  T total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) {
    const T e = math::exp(x[i] - shift);
    y[i] = e;
    total += e;
  }
  return total;
}

template <class T>
RILL_KERNEL T sum_exp_shifted(const T* x, T shift, std::int64_t n) noexcept {
  T total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) total += math::exp(x[i] - shift);
  return total;
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
T sum(const T* x, std::int64_t n) noexcept {
  return pairwise<T>(0, n, [x](std::int64_t begin, std::int64_t size) { return block_sum(x + begin, size); });
}

template <class T>
T dot(const T* x, const T* y, std::int64_t n) noexcept {
  return pairwise<T>(
      0, n, [x, y](std::int64_t begin, std::int64_t size) { return block_dot(x + begin, y + begin, size); });
}

template <class T>
T max(const T* x, std::int64_t n) noexcept {
  return max_kernel(x, n);
}

template <class T>
void sum_rows(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx, T beta, T* y) noexcept {
  // Rows are added in blocks first, so the error does not grow with m.
  constexpr std::int64_t most_rows = 128;
  constexpr std::int64_t most_columns = 512;
  scale(n, beta, y);
  if (m <= most_rows) return add_rows(m, n, x, ldx, y);
  for (std::int64_t j = 0; j < n; j += most_columns) {
    const std::int64_t columns = std::min(most_columns, n - j);
    for (std::int64_t i = 0; i < m; i += most_rows) {
      T partial[most_columns];
      std::fill(partial, partial + columns, T(0));
      add_rows(std::min(most_rows, m - i), columns, x + i * ldx + j, ldx, partial);
      add_rows(1, columns, partial, 0, y + j);
    }
  }
}

template <class T>
void sum_cols(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx, T beta, T* y) noexcept {
  for (std::int64_t i = 0; i < m; ++i) {
    const T total = sum(x + i * ldx, n);
    y[i] = beta == T(0) ? total : beta * y[i] + total;
  }
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

#define RILL_INSTANTIATE(T)                                                                      \
  template T sum<T>(const T*, std::int64_t) noexcept;                                            \
  template T dot<T>(const T*, const T*, std::int64_t) noexcept;                                  \
  template T max<T>(const T*, std::int64_t) noexcept;                                            \
  template void sum_rows<T>(std::int64_t, std::int64_t, const T*, std::int64_t, T, T*) noexcept; \
  template void sum_cols<T>(std::int64_t, std::int64_t, const T*, std::int64_t, T, T*) noexcept; \
  template void row_softmax<T>(const T*, T*, std::int64_t) noexcept;                             \
  template void row_log_softmax<T>(const T*, T*, std::int64_t) noexcept;                         \
  template void row_softmax_backward<T>(const T*, const T*, T, T*, std::int64_t) noexcept;       \
  template void row_log_softmax_backward<T>(const T*, const T*, T, T*, std::int64_t) noexcept;
RILL_INSTANTIATE(float)
RILL_INSTANTIATE(double)
#undef RILL_INSTANTIATE

}  // namespace rill::kernels
