/// Norm sums and clipping of gradients: plain arrays, single-threaded, without allocation.
///
/// Sums are accumulated in float64. Instantiated for float and double.
#pragma once

#include <cstdint>

namespace rill::kernels {

/// Σ |x|, Σ x², Σ |x|^p.
template <class T>
double sum_abs(std::int64_t n, const T* x) noexcept;
template <class T>
double sum_squares(std::int64_t n, const T* x) noexcept;
template <class T>
double sum_powers(std::int64_t n, const T* x, double p) noexcept;

/// max |x|, at least 0; NaN if any is NaN.
template <class T>
double max_abs(std::int64_t n, const T* x) noexcept;

/// x = factor · x.
template <class T>
void scale_in_place(std::int64_t n, T* x, T factor) noexcept;

/// x = min(max(x, -limit), limit); NaN is kept.
template <class T>
void clamp_in_place(std::int64_t n, T* x, T limit) noexcept;

}  // namespace rill::kernels
