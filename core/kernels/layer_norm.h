/// Layer normalisation of one row: single-threaded, without allocation. Instantiated for float and double.
#pragma once

#include <cstdint>

namespace rill::kernels {

/// Mean of a row and 1 / sqrt(variance + eps), the variance with divisor n.
template <class T>
struct RowMoments {
  T mean;
  T inverse_deviation;
};

template <class T>
RowMoments<T> row_moments(const T* x, T eps, std::int64_t n) noexcept;

/// y = (x - mean) inverse_deviation weight + bias; weight and bias may be null (ones, zeros).
template <class T>
void normalize_row(const T* x, RowMoments<T> m, const T* weight, const T* bias, T* y,
                   std::int64_t n) noexcept;

/// With x^ = (x - mean) inverse_deviation and g = dy weight:
/// dx = beta dx + inverse_deviation (g - mean(g) - x^ mean(g x^)).
template <class T>
void normalize_row_backward(const T* x, RowMoments<T> m, const T* weight, const T* dy, T beta, T* dx,
                            std::int64_t n) noexcept;

/// dweight += dy x^.
template <class T>
void add_normalized(const T* x, RowMoments<T> m, const T* dy, T* dweight, std::int64_t n) noexcept;

}  // namespace rill::kernels
