/// The pointwise parts of a RAU's step, before and after the product with W_aa. Gates: r, z, h~, a.
#pragma once

#include <rill/core/kernels/math.h>
#include <rill/nn/recurrent/step_kernels.h>

namespace rill::kernels {
namespace {  // local to the unit's source file, like every kernel template (core/kernels/simd.h)

/// r, z and h~; a's block becomes the sum that h~·W_aa is added to.
template <class T>
RILL_KERNEL void rau_forward(const StepRows<T>& rows) noexcept {
  const std::int64_t n = rows.hidden;
  const T* bias = rows.bias;
  for (std::int64_t k = 0; k < rows.count; ++k) {
    const T* products = rows.products + k * 4 * n;
    T *gates = rows.gates + k * 4 * n, *q = rows.q + k * n;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const T r = math::sigmoid(gates[i] + products[i] + bias[i]);
      const T z = math::sigmoid(gates[n + i] + products[n + i] + bias[n + i]);
      const T from_hidden = products[2 * n + i];
      gates[i] = r;
      gates[n + i] = z;
      gates[2 * n + i] = math::tanh(gates[2 * n + i] + bias[2 * n + i] + r * from_hidden);
      gates[3 * n + i] += products[3 * n + i] + bias[3 * n + i];
      q[i] = from_hidden;
    }
  }
}

/// a and the new state.
template <class T>
RILL_KERNEL void rau_forward_inner(const StepRows<T>& rows) noexcept {
  const std::int64_t n = rows.hidden;
  for (std::int64_t k = 0; k < rows.count; ++k) {
    const T* before = rows.h[k];
    T *gates = rows.gates + k * 4 * n, *h = rows.next_h[k];
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const T a = math::sigmoid(gates[3 * n + i]);
      gates[3 * n + i] = a;
      h[i] = before[i] + gates[n + i] * (a * gates[2 * n + i] - before[i]);
    }
  }
}

/// Gradients of z, a and of h~ through the new state; da·W_aaᵀ is then added to the last.
template <class T>
RILL_KERNEL void rau_backward_inner(const StepGradients<T>& rows) noexcept {
  const std::int64_t n = rows.hidden;
  for (std::int64_t k = 0; k < rows.count; ++k) {
    const T* before = rows.h[k];
    T *gates = rows.gates + k * 4 * n, *dcandidate = rows.candidate + k * n, *dh = rows.dh + k * n;
    add_row(n, rows.dy, k, dh);
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const T z = gates[n + i], candidate = gates[2 * n + i], a = gates[3 * n + i];
      const T gradient = dh[i];
      dcandidate[i] = gradient * z * a;
      gates[n + i] = gradient * (a * candidate - before[i]) * z * (1 - z);
      gates[3 * n + i] = gradient * z * candidate * a * (1 - a);
      dh[i] = gradient * (1 - z);
    }
  }
}

/// Gradients of r and h~.
template <class T>
RILL_KERNEL void rau_backward(const StepGradients<T>& rows) noexcept {
  const std::int64_t n = rows.hidden;
  for (std::int64_t k = 0; k < rows.count; ++k) {
    T *gates = rows.gates + k * 4 * n, *q = rows.q + k * n, *dcandidate = rows.candidate + k * n;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const T r = gates[i], candidate = gates[2 * n + i];
      const T dh = dcandidate[i] * (1 - candidate * candidate);
      gates[i] = dh * q[i] * r * (1 - r);
      gates[2 * n + i] = dh * r;
      q[i] = dh;
      dcandidate[i] = candidate;
    }
  }
}

}  // namespace
}  // namespace rill::kernels
