/// The gates of a GRU: one row of a batch at one step, on one thread.
#pragma once

#include <cstdint>

namespace rill::kernels {

/// From the products of one row to its next state. `gates` [3n] holds x·W_ih on entry and r, z, n on return;
/// `hidden` [3n] is h·W_hh of the state `before` [n]; `bias` [4n]: those of r and of z (both summed), of n's
/// input side, of its hidden side.
///
///   r, z = σ(gates + hidden + bias);  q = hidden_n + bias_hn;  n = tanh(gates_n + bias_in + r q)
///   h = n + z (before - n)
template <class T>
void gru_gates(std::int64_t n, const T* hidden, const T* bias, const T* before, T* gates, T* q,
               T* h) noexcept;

/// The way back through gru_gates. `dh` [n] is the gradient of h from the later steps, `dy` that from h's
/// other uses (or null). On return `gates` holds the gradients of the hidden products (dr, dz, dn · r), `q`
/// that of n's input side (dn) and `dh` the part of the gradient of `before` that comes through z.
template <class T>
void gru_gates_backward(std::int64_t n, const T* before, const T* dy, T* gates, T* q, T* dh) noexcept;

}  // namespace rill::kernels
