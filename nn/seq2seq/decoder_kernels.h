/// Pointwise parts of the decoder's recurrence, serial.
#pragma once

#include <cstdint>

namespace rill::kernels {

/// y = max(x, 0) for n elements; NaN is kept.
template <class T>
void relu_row(std::int64_t n, const T* x, T* y) noexcept;

/// The backward pass: dx += dy where x > 0.
template <class T>
void relu_row_backward(std::int64_t n, const T* x, const T* dy, T* dx) noexcept;

}  // namespace rill::kernels
