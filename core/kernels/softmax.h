/// Log-sum-exp and exponentials of rows, beside the softmax of reduce.h: one thread, no allocation.
///
/// Instantiated for float and double. n may be 0.
#pragma once

#include <cstdint>

namespace rill::kernels {

/// log Σ e^x[i] in two terms: apart they keep the digits that a large maximum would swallow.
template <class T>
struct LogSumExp {
  T greatest;  ///< max x
  T log_sum;   ///< log Σ e^(x - max x)
};

/// Over nothing, and of a row of -infinity, -infinity + 0. NaN for NaN, infinity for infinity.
template <class T>
LogSumExp<T> log_sum_exp(const T* x, std::int64_t n) noexcept;

/// y[i] = scale · e^(x[i] - shift).
template <class T>
void scaled_exp(const T* x, T shift, T scale, T* y, std::int64_t n) noexcept;

/// x = e^(x - greatest); returns the sum.
template <class T>
T exp_in_place(T greatest, T* x, std::int64_t n) noexcept;

}  // namespace rill::kernels
