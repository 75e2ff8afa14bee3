/// The pointwise part of a GRU's step. Gates: r, z, n.
#pragma once

#include <rill/core/kernels/math.h>
#include <rill/nn/recurrent/step_kernels.h>

namespace rill::kernels {
namespace {  // local to the unit's source file, like every kernel template (core/kernels/simd.h)

template <class T>
RILL_KERNEL void gru_forward(const StepRows<T>& rows) noexcept {
  const std::int64_t n = rows.hidden;
  const T* bias = rows.bias;
  for (std::int64_t k = 0; k < rows.count; ++k) {
    const T *before = rows.h[k], *products = rows.products + k * 3 * n;
    T *gates = rows.gates + k * 3 * n, *q = rows.q + k * n, *h = rows.next_h[k];
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const T r = math::sigmoid(gates[i] + products[i] + bias[i]);
      const T z = math::sigmoid(gates[n + i] + products[n + i] + bias[n + i]);
      const T from_hidden = products[2 * n + i] + bias[3 * n + i];
      const T fresh = math::tanh(gates[2 * n + i] + bias[2 * n + i] + r * from_hidden);
      gates[i] = r;
      gates[n + i] = z;
      gates[2 * n + i] = fresh;
      q[i] = from_hidden;
      h[i] = fresh + z * (before[i] - fresh);
    }
  }
}

template <class T>
RILL_KERNEL void gru_backward(const StepGradients<T>& rows) noexcept {
  const std::int64_t n = rows.hidden;
  for (std::int64_t k = 0; k < rows.count; ++k) {
    const T* before = rows.h[k];
    T *gates = rows.gates + k * 3 * n, *q = rows.q + k * n, *dh = rows.dh + k * n;
    add_row(n, rows.dy, k, dh);
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const T r = gates[i], z = gates[n + i], fresh = gates[2 * n + i];
      const T gradient = dh[i];
      const T dn = gradient * (1 - z) * (1 - fresh * fresh);
      gates[i] = dn * q[i] * r * (1 - r);
      gates[n + i] = gradient * (before[i] - fresh) * z * (1 - z);
      gates[2 * n + i] = dn * r;
      q[i] = dn;
      dh[i] = gradient * z;
    }
  }
}

}  // namespace
}  // namespace rill::kernels
