#include <rill/nn/recurrent/gru_kernels.h>

#include <rill/core/kernels/math.h>
#include <rill/core/kernels/simd.h>

namespace rill::kernels {
namespace {

template <class T>
RILL_KERNEL void forward_kernel(std::int64_t n, const T* hidden, const T* bias, const T* before, T* gates,
                                T* q, T* h) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T r = math::sigmoid(gates[i] + hidden[i] + bias[i]);
    const T z = math::sigmoid(gates[n + i] + hidden[n + i] + bias[n + i]);
    const T from_hidden = hidden[2 * n + i] + bias[3 * n + i];
    const T fresh = math::tanh(gates[2 * n + i] + bias[2 * n + i] + r * from_hidden);
    gates[i] = r;
    gates[n + i] = z;
    gates[2 * n + i] = fresh;
    q[i] = from_hidden;
    h[i] = fresh + z * (before[i] - fresh);
  }
}

template <class T>
RILL_KERNEL void backward_kernel(std::int64_t n, const T* before, T* gates, T* q, T* dh) noexcept {
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

template <class T>
RILL_KERNEL void add_kernel(std::int64_t n, const T* x, T* y) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] += x[i];
}

}  // namespace

template <class T>
void gru_gates(std::int64_t n, const T* hidden, const T* bias, const T* before, T* gates, T* q,
               T* h) noexcept {
  forward_kernel<T>(n, hidden, bias, before, gates, q, h);
}

template <class T>
void gru_gates_backward(std::int64_t n, const T* before, const T* dy, T* gates, T* q, T* dh) noexcept {
  if (dy) add_kernel<T>(n, dy, dh);
  backward_kernel<T>(n, before, gates, q, dh);
}

#define RILL_INSTANTIATE(T)                                                                    \
  template void gru_gates<T>(std::int64_t, const T*, const T*, const T*, T*, T*, T*) noexcept; \
  template void gru_gates_backward<T>(std::int64_t, const T*, const T*, T*, T*, T*) noexcept;
RILL_INSTANTIATE(float)
RILL_INSTANTIATE(double)
#undef RILL_INSTANTIATE

}  // namespace rill::kernels
