#include <rill/nn/recurrent/rau_kernels.h>

#include <rill/core/kernels/math.h>
#include <rill/core/kernels/simd.h>

namespace rill::kernels {
namespace {

template <class T>
RILL_KERNEL void gates_kernel(std::int64_t n, const T* hidden, const T* bias, T* gates, T* q) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T r = math::sigmoid(gates[i] + hidden[i] + bias[i]);
    const T z = math::sigmoid(gates[n + i] + hidden[n + i] + bias[n + i]);
    const T from_hidden = hidden[2 * n + i];
    gates[i] = r;
    gates[n + i] = z;
    gates[2 * n + i] = math::tanh(gates[2 * n + i] + bias[2 * n + i] + r * from_hidden);
    gates[3 * n + i] += hidden[3 * n + i] + bias[3 * n + i];
    q[i] = from_hidden;
  }
}

template <class T>
RILL_KERNEL void state_kernel(std::int64_t n, const T* before, T* gates, T* h) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T a = math::sigmoid(gates[3 * n + i]);
    gates[3 * n + i] = a;
    h[i] = before[i] + gates[n + i] * (a * gates[2 * n + i] - before[i]);
  }
}

template <class T>
RILL_KERNEL void state_backward_kernel(std::int64_t n, const T* before, T* gates, T* dcandidate,
                                       T* dh) noexcept {
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

template <class T>
RILL_KERNEL void gates_backward_kernel(std::int64_t n, T* dcandidate, T* gates, T* q) noexcept {
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

template <class T>
RILL_KERNEL void add_kernel(std::int64_t n, const T* x, T* y) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] += x[i];
}

}  // namespace

template <class T>
void rau_gates(std::int64_t n, const T* hidden, const T* bias, T* gates, T* q) noexcept {
  gates_kernel<T>(n, hidden, bias, gates, q);
}

template <class T>
void rau_state(std::int64_t n, const T* before, T* gates, T* h) noexcept {
  state_kernel<T>(n, before, gates, h);
}

template <class T>
void rau_state_backward(std::int64_t n, const T* before, const T* dy, T* gates, T* dcandidate,
                        T* dh) noexcept {
  if (dy) add_kernel<T>(n, dy, dh);
  state_backward_kernel<T>(n, before, gates, dcandidate, dh);
}

template <class T>
void rau_gates_backward(std::int64_t n, T* dcandidate, T* gates, T* q) noexcept {
  gates_backward_kernel<T>(n, dcandidate, gates, q);
}

#define RILL_INSTANTIATE(T)                                                                   \
  template void rau_gates<T>(std::int64_t, const T*, const T*, T*, T*) noexcept;              \
  template void rau_state<T>(std::int64_t, const T*, T*, T*) noexcept;                        \
  template void rau_state_backward<T>(std::int64_t, const T*, const T*, T*, T*, T*) noexcept; \
  template void rau_gates_backward<T>(std::int64_t, T*, T*, T*) noexcept;
RILL_INSTANTIATE(float)
RILL_INSTANTIATE(double)
#undef RILL_INSTANTIATE

}  // namespace rill::kernels
