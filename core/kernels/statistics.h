/// Norms, deviations, extremes and log-sum-exp of a row: one thread, in an order that depends on the size
/// alone.
///
/// Instantiated for float and double. n may be 0.
#pragma once

#include <cstdint>

namespace rill::kernels {

/// The least of n numbers: NaN if any is NaN, infinity if n is 0.
template <class T>
T min(const T* x, std::int64_t n) noexcept;

/// The first i with x[i] = value, or x[i] NaN where the value is NaN; -1 if there is none.
template <class T>
std::int64_t first_equal(const T* x, std::int64_t n, T value) noexcept;

/// How many x[i] are the value.
template <class T>
std::int64_t count_equal(const T* x, std::int64_t n, T value) noexcept;

/// Product of n numbers; 1 if n is 0.
template <class T>
T product(const T* x, std::int64_t n) noexcept;

/// Gradient of the product: dx[i] = dy times the product of all others, exact also where numbers are 0. dx
/// must not be x.
template <class T>
void product_backward(const T* x, T dy, T* dx, std::int64_t n) noexcept;

/// sum_i (x[i] - mean)^2.
template <class T>
T sum_squared_deviations(const T* x, T mean, std::int64_t n) noexcept;

/// sum_i |x[i]|.
template <class T>
T sum_abs(const T* x, std::int64_t n) noexcept;

/// sum_i |x[i]|^p.
template <class T>
T sum_abs_pow(const T* x, T p, std::int64_t n) noexcept;

/// The greatest |x[i]|: NaN if any is NaN, 0 if n is 0.
template <class T>
T max_abs(const T* x, std::int64_t n) noexcept;

/// The least |x[i]|: NaN if any is NaN, infinity if n is 0.
template <class T>
T min_abs(const T* x, std::int64_t n) noexcept;

/// log sum_i e^x[i] as the sum of two parts: apart they keep the digits that a large maximum would swallow.
template <class T>
struct LogSumExp {
  T greatest;
  T log_sum;
};

/// Over nothing, and of a row of -infinity, -infinity + 0. NaN for NaN, infinity for infinity.
template <class T>
LogSumExp<T> log_sum_exp(const T* x, std::int64_t n) noexcept;

/// y[i] = scale · e^(x[i] - shift).
template <class T>
void scaled_exp(const T* x, T shift, T scale, T* y, std::int64_t n) noexcept;

}  // namespace rill::kernels
