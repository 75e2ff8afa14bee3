/// The pointwise part of an LSTM's step. Gates: i, f, g, o.
#pragma once

#include <rill/core/kernels/math.h>
#include <rill/nn/recurrent/step_kernels.h>

namespace rill::kernels {
namespace {  // local to the unit's source file, like every kernel template (core/kernels/simd.h)

template <class T>
RILL_KERNEL void lstm_forward(const StepRows<T>& rows) noexcept {
  const std::int64_t n = rows.hidden;
  const T* bias = rows.bias;
  for (std::int64_t k = 0; k < rows.count; ++k) {
    const T *products = rows.products + k * 4 * n, *previous = rows.c[k];
    T *gates = rows.gates + k * 4 * n, *h = rows.next_h[k], *c = rows.next_c[k];
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) {
      const T i = math::sigmoid(gates[j] + products[j] + bias[j]);
      const T f = math::sigmoid(gates[n + j] + products[n + j] + bias[n + j]);
      const T g = math::tanh(gates[2 * n + j] + products[2 * n + j] + bias[2 * n + j]);
      const T o = math::sigmoid(gates[3 * n + j] + products[3 * n + j] + bias[3 * n + j]);
      gates[j] = i;
      gates[n + j] = f;
      gates[2 * n + j] = g;
      gates[3 * n + j] = o;
      c[j] = f * previous[j] + i * g;
      h[j] = o * math::tanh(c[j]);
    }
  }
}

/// The new cell state and its tanh are recomputed.
template <class T>
RILL_KERNEL void lstm_backward(const StepGradients<T>& rows) noexcept {
  const std::int64_t n = rows.hidden;
  for (std::int64_t k = 0; k < rows.count; ++k) {
    const T* previous = rows.c[k];
    T *gates = rows.gates + k * 4 * n, *dh = rows.dh + k * n, *dc = rows.dc + k * n;
    add_row(n, rows.dy, k, dh);
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) {
      const T i = gates[j], f = gates[n + j], g = gates[2 * n + j], o = gates[3 * n + j];
      const T active = math::tanh(f * previous[j] + i * g);
      const T through_c = dc[j] + dh[j] * o * (1 - active * active);
      gates[j] = through_c * g * i * (1 - i);
      gates[n + j] = through_c * previous[j] * f * (1 - f);
      gates[2 * n + j] = through_c * i * (1 - g * g);
      gates[3 * n + j] = dh[j] * active * o * (1 - o);
      dc[j] = through_c * f;
      dh[j] = 0;
    }
  }
}

}  // namespace
}  // namespace rill::kernels
