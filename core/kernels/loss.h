/// Cross entropy of one row of scores x [n]: one thread, no allocation. Instantiated for float and double.
///
/// A row's loss is that of its class plus, with label smoothing, a little of every class's: with z = log sum
/// e^x
///   L = a (z - x[target]) + b sum_c weight[c] (z - x[c]), so
///   dL/dx = (a + b sum weight) softmax(x) - b weight, and a less at the target.
#pragma once

#include <cstdint>

#include <rill/core/kernels/statistics.h>

namespace rill::kernels {

/// sum_c weight[c] (greatest - x[c]); weight null: ones.
template <class T>
T weighted_gap(const T* x, T greatest, const T* weight, std::int64_t n) noexcept;

/// dx = beta dx + scale e^(x - z) - b weight; weight null: ones.
template <class T>
void cross_entropy_backward(const T* x, LogSumExp<T> z, T scale, T b, const T* weight, T beta, T* dx,
                            std::int64_t n) noexcept;

/// x += bias.
template <class T>
void add_to(const T* bias, T* x, std::int64_t n) noexcept;

/// x = e^(x - greatest); returns the sum.
template <class T>
T exp_in_place(T greatest, T* x, std::int64_t n) noexcept;

/// x = scale x - b weight; weight null: ones.
template <class T>
void scale_in_place(T scale, T b, const T* weight, T* x, std::int64_t n) noexcept;

}  // namespace rill::kernels
