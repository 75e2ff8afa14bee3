/// Sums, products, extrema, counts and softmax of rows: single-threaded, without allocation, in an order that
/// depends on the sizes alone.
///
/// Instantiated for float and double. n and m may be 0.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)

namespace rill::kernels {

/// Σ x[i], accumulated in float64 (block_sum.h), as are the other sums here.
template <class T>
[[gnu::visibility("default")]] T sum(const T* x, std::int64_t n) noexcept;

/// Σ x[i] y[i].
template <class T>
[[gnu::visibility("default")]] T dot(const T* x, const T* y, std::int64_t n) noexcept;

/// Σ (x[i] - mean)².
template <class T>
[[gnu::visibility("default")]] T sum_squared_deviations(const T* x, T mean, std::int64_t n) noexcept;

/// Σ |x[i]|.
template <class T>
[[gnu::visibility("default")]] T sum_abs(const T* x, std::int64_t n) noexcept;

/// Σ |x[i]|^p.
template <class T>
[[gnu::visibility("default")]] T sum_abs_pow(const T* x, T p, std::int64_t n) noexcept;

/// Sum of the m rows of x [m, n] with leading dimension ldx: y[j] = beta y[j] + Σ_i x[i, j]. With beta 0, y
/// is overwritten.
template <class T>
[[gnu::visibility("default")]] void sum_rows(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx,
                                             T beta, T* y) noexcept;

/// The same for rows at[0], …, at[m - 1] of x.
template <class T>
[[gnu::visibility("default")]] void sum_gathered_rows(std::int64_t m, std::int64_t n, const T* x,
                                                      std::int64_t ldx, const std::int64_t* at, T beta,
                                                      T* y) noexcept;

/// Π x[i]; 1 if n is 0.
template <class T>
[[gnu::visibility("default")]] T product(const T* x, std::int64_t n) noexcept;

/// Gradient of the product: dx[i] = dy times the product of the others, exact also where elements are 0. dx
/// must not be x.
template <class T>
[[gnu::visibility("default")]] void product_backward(const T* x, T dy, T* dx, std::int64_t n) noexcept;

/// max x[i]: NaN if any is NaN, -infinity if n is 0.
template <class T>
[[gnu::visibility("default")]] T max(const T* x, std::int64_t n) noexcept;

/// min x[i]: NaN if any is NaN, infinity if n is 0.
template <class T>
[[gnu::visibility("default")]] T min(const T* x, std::int64_t n) noexcept;

/// max |x[i]|: NaN if any is NaN, 0 if n is 0.
template <class T>
[[gnu::visibility("default")]] T max_abs(const T* x, std::int64_t n) noexcept;

/// min |x[i]|: NaN if any is NaN, infinity if n is 0.
template <class T>
[[gnu::visibility("default")]] T min_abs(const T* x, std::int64_t n) noexcept;

/// The first i with x[i] = value, or x[i] NaN where the value is NaN; -1 if there is none.
template <class T>
[[gnu::visibility("default")]] std::int64_t first_equal(const T* x, std::int64_t n, T value) noexcept;

/// The number of x[i] equal to value.
template <class T>
[[gnu::visibility("default")]] std::int64_t count_equal(const T* x, std::int64_t n, T value) noexcept;

/// y = e^(x - max x) / Σ. -infinity gives exactly 0; a row that is all -infinity, or contains NaN or
/// +infinity, gives NaN. x and y may be the same.
template <class T>
[[gnu::visibility("default")]] void row_softmax(const T* x, T* y, std::int64_t n) noexcept;

/// y = x - max x - log Σ e^(x - max x); special cases as above, -infinity stays. x and y may be the same.
template <class T>
[[gnu::visibility("default")]] void row_log_softmax(const T* x, T* y, std::int64_t n) noexcept;

/// Gradient of y = softmax(x): dx = beta dx + y (dy - dot(dy, y)). dx may be dy.
template <class T>
[[gnu::visibility("default")]] void row_softmax_backward(const T* y, const T* dy, T beta, T* dx,
                                                         std::int64_t n) noexcept;

/// Gradient of y = log_softmax(x): dx = beta dx + dy - e^y sum(dy). dx may be dy.
template <class T>
[[gnu::visibility("default")]] void row_log_softmax_backward(const T* y, const T* dy, T beta, T* dx,
                                                             std::int64_t n) noexcept;

}  // namespace rill::kernels

#pragma GCC visibility pop
