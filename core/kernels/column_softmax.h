/// Softmax down the columns of a matrix, for a dimension that is not the last: one thread, no allocation.
///
/// The same formulas and special cases as row_softmax and its kin (reduce.h), column by column. x is [m, n],
/// n at most `widest_columns`; ldx, ldy, … are the distances between rows. Instantiated for float and double.
#pragma once

#include <cstdint>

namespace rill::kernels {

inline constexpr std::int64_t widest_columns = 64;

template <class T>
void column_softmax(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx, T* y,
                    std::int64_t ldy) noexcept;

template <class T>
void column_log_softmax(std::int64_t m, std::int64_t n, const T* x, std::int64_t ldx, T* y,
                        std::int64_t ldy) noexcept;

/// dx = beta dx + y (dy - sum of dy y over the column).
template <class T>
void column_softmax_backward(std::int64_t m, std::int64_t n, const T* y, std::int64_t ldy, const T* dy,
                             std::int64_t lddy, T beta, T* dx, std::int64_t lddx) noexcept;

/// dx = beta dx + dy - e^y (sum of dy over the column).
template <class T>
void column_log_softmax_backward(std::int64_t m, std::int64_t n, const T* y, std::int64_t ldy, const T* dy,
                                 std::int64_t lddy, T beta, T* dx, std::int64_t lddx) noexcept;

}  // namespace rill::kernels
