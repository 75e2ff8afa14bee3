/// Log-sum-exp and exponentials of rows, complementing the softmax of reduce.h: single-threaded, without
/// allocation.
///
/// Instantiated for float and double. n may be 0.
#pragma once

#include <cstdint>

namespace rill::kernels {

/// log Σ e^x[i] as two terms, which keep the digits that a large maximum would absorb.
template <class T>
struct LogSumExp {
  T greatest;  ///< max x
  T log_sum;   ///< log Σ e^(x - max x)
};

/// -infinity + 0 for an empty row and for a row of -infinity. NaN for NaN, infinity for infinity.
template <class T>
LogSumExp<T> log_sum_exp(const T* x, std::int64_t n) noexcept;

/// y[i] = scale · e^(x[i] - shift).
template <class T>
void scaled_exp(const T* x, T shift, T scale, T* y, std::int64_t n) noexcept;

/// x = e^(x - greatest); returns the sum.
template <class T>
T exp_in_place(T greatest, T* x, std::int64_t n) noexcept;

}  // namespace rill::kernels
