/// Cross entropy of one row of scores x [n]: single-threaded, without allocation. Instantiated for float and
/// double.
///
/// The loss of a row is that of its class plus, with label smoothing, a fraction of that of every class: with
/// z = log Σ e^x
///   L = a (z - x[target]) + b Σ_c weight[c] (z - x[c]), so
///   dL/dx = (a + b Σ weight) softmax(x) - b weight, and a less at the target.
/// A null weight is ones.
#pragma once

#include <cstdint>

#include <rill/core/kernels/softmax.h>

namespace rill::kernels {

/// Σ_c weight[c] (greatest - x[c]).
template <class T>
T weighted_gap(const T* x, T greatest, const T* weight, std::int64_t n) noexcept;

/// dx = beta dx + scale e^(x - z) - b weight.
template <class T>
void cross_entropy_backward(const T* x, LogSumExp<T> z, T scale, T b, const T* weight, T beta, T* dx,
                            std::int64_t n) noexcept;

/// x += bias.
template <class T>
void add_bias(const T* bias, T* x, std::int64_t n) noexcept;

/// x = scale x - b weight.
template <class T>
void scale_and_subtract(T scale, T b, const T* weight, T* x, std::int64_t n) noexcept;

}  // namespace rill::kernels
