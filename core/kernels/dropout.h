/// The elementwise loops of dropout: single-threaded, without allocation. Instantiated for float and double.
#pragma once

#include <cstdint>

namespace rill::kernels {

/// y = x mask; kept is 1 where mask != 0 and 0 elsewhere, unless it is null.
template <class T>
void apply_mask(const T* x, const T* mask, T* y, std::uint8_t* kept, std::int64_t n) noexcept;

/// dx = beta dx + dy scale where kept, beta dx elsewhere.
template <class T>
void pass_kept(const T* dy, const std::uint8_t* kept, T scale, T beta, T* dx, std::int64_t n) noexcept;

}  // namespace rill::kernels
