/// Sums, maxima and softmax of rows: one thread, no allocation, in an order that depends on the sizes alone.
///
/// Instantiated for float and double. n and m may be 0.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)

namespace rill::kernels {

/// Sum of n numbers: blocks of 512 added pairwise, so the error grows with log n.
template <class T>
[[gnu::visibility("default")]] T sum(const T* x, std::int64_t n) noexcept;

/// Sum of x[i] y[i], added like `sum`.
template <class T>
[[gnu::visibility("default")]] T dot(const T* x, const T* y, std::int64_t n) noexcept;

/// The greatest of n numbers: NaN if any is NaN, -infinity if n is 0.
template <class T>
[[gnu::visibility("default")]] T max(const T* x, std::int64_t n) noexcept;

/// Sum of the m rows of x [m, n]: y[j] = beta y[j] + sum_i x[i, j]. With beta 0, y is overwritten whatever it
/// held. `ldx` is the distance between rows.
template <class T>
[[gnu::visibility("default")]] void sum_rows(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx,
                                             T beta, T* y) noexcept;

/// Sum of the n columns of x [m, n]: y[i] = beta y[i] + sum_j x[i, j].
template <class T>
[[gnu::visibility("default")]] void sum_cols(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx,
                                             T beta, T* y) noexcept;

/// y = exp(x - max x) / sum. -infinity gives exactly 0; a row of nothing but -infinity, or with NaN or
/// +infinity in it, gives NaN. x and y may be the same.
template <class T>
[[gnu::visibility("default")]] void row_softmax(const T* x, T* y, std::int64_t n) noexcept;

/// y = x - max x - log sum exp(x - max x); special cases as above, -infinity stays. x and y may be the same.
template <class T>
[[gnu::visibility("default")]] void row_log_softmax(const T* x, T* y, std::int64_t n) noexcept;

/// Gradient of y = softmax(x): dx = beta dx + y (dy - dot(dy, y)). dx may be dy.
template <class T>
[[gnu::visibility("default")]] void row_softmax_backward(const T* y, const T* dy, T beta, T* dx,
                                                         std::int64_t n) noexcept;

/// Gradient of y = log_softmax(x): dx = beta dx + dy - exp(y) sum(dy). dx may be dy.
template <class T>
[[gnu::visibility("default")]] void row_log_softmax_backward(const T* y, const T* dy, T beta, T* dx,
                                                             std::int64_t n) noexcept;

}  // namespace rill::kernels

#pragma GCC visibility pop
