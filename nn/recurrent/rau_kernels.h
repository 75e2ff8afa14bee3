/// The gates of a RAU: one row of a batch at one step, on one thread. The attention gate reads the candidate,
/// so a step has a product in its middle and each way two kernels.
#pragma once

#include <cstdint>

namespace rill::kernels {

/// First half of a step. `gates` [4n] holds x·W on entry (r, z, h, a); `hidden` [4n] is h·W of the state
/// before; `bias` [4n]. On return `gates` holds r, z, h~ and the sum so far of a, and `q` [n] the hidden
/// product of h~.
///
///   r, z = σ(gates + hidden + bias);  q = hidden_h;  h~ = tanh(gates_h + bias_h + r q);
///   a' = gates_a + hidden_a + bias_a
template <class T>
void rau_gates(std::int64_t n, const T* hidden, const T* bias, T* gates, T* q) noexcept;

/// Second half, after h~·W_aa was added to a': a = σ(a');  h = before + z (a h~ - before).
template <class T>
void rau_state(std::int64_t n, const T* before, T* gates, T* h) noexcept;

/// The way back through rau_state. `dh` [n] is the gradient of h from the later steps, `dy` that from h's
/// other uses (or null). On return `gates` holds dz and da in the places of z and a, `dcandidate` [n] the
/// gradient of h~ that comes through h, and `dh` the part of the gradient of `before` that comes through z.
template <class T>
void rau_state_backward(std::int64_t n, const T* before, const T* dy, T* gates, T* dcandidate,
                        T* dh) noexcept;

/// The way back through rau_gates, after da·W_aaᵀ was added to `dcandidate`. On return `gates` holds the
/// gradients of the hidden products (dr, dz, dh~ · r, da), `q` that of h~'s input side (dh~) and `dcandidate`
/// h~ itself, which W_aa's gradient needs.
template <class T>
void rau_gates_backward(std::int64_t n, T* dcandidate, T* gates, T* q) noexcept;

}  // namespace rill::kernels
