/// Softmax over the columns of a matrix, for a dimension that is not the last: single-threaded, without
/// allocation.
///
/// The formulas and special cases of row_softmax, per column; with `log` those of row_log_softmax. x is [m,
/// n], n at most `most_columns`; ldx, ldy, … are leading dimensions. Instantiated for float and double.
#pragma once

#include <cstdint>

namespace rill::kernels {

inline constexpr std::int64_t most_columns = 64;

template <class T, bool log>
void column_softmax(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx, T* y,
                    std::int64_t ldy) noexcept;

/// Softmax: dx = beta dx + y (dy - Σ dy y); log-softmax: dx = beta dx + dy - e^y Σ dy, sums over the column.
template <class T, bool log>
void column_softmax_backward(std::int64_t m, std::int64_t n, const T* y, std::int64_t ldy, const T* dy,
                             std::int64_t lddy, T beta, T* dx, std::int64_t lddx) noexcept;

}  // namespace rill::kernels
