/// The units that a decoder may step with, on the rows of one thread. Internal to decoder_sequence.
///
/// Both have one form. Forward: `gates` [rows, G] holds the whole input side on entry and, with `q` [rows,
/// H], what the gradient needs on return. Backward: `hidden` [rows, G] holds those gates (or a copy) on entry
/// and the gradients of the state's products on return, `gates` [rows, G] gets those of the input side, `dh`
/// [rows, H] turns from the gradient of the new state into that of the old.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include <rill/core/ops/packed_weight.h>
#include <rill/nn/recurrent/gru_kernels.h>
#include <rill/nn/recurrent/rau_kernels.h>
#include <rill/nn/seq2seq/decoder_sequence.h>

namespace rill::nn::detail {

/// Rows of a matrix: the first one's first element and the distance to the next.
template <class T>
struct Rows {
  T* first;
  std::int64_t stride;
  T* operator[](std::int64_t i) const noexcept { return first + i * stride; }
};

enum class Pass : std::uint8_t { forward, backward };

/// A matrix [k, n] for products with a batch of rows, or for the products' gradients its transpose.
template <class T>
std::shared_ptr<const PackedMatrix<T>> packed_for(Pass pass, const Tensor& w, std::int64_t batch) {
  const Tensor plain = w.detach();
  return packed<T>(pass == Pass::forward ? plain : plain.t(), batch);
}

template <class T>
class GruStep {
 public:
  static constexpr std::int64_t gates = 3;

  GruStep(Pass pass, const DecoderWeights& w, std::int64_t batch)
      : hidden_(w.hidden.size(0)),
        product_(packed_for<T>(pass, w.hidden, batch)),
        bias_(zeros({4 * hidden_}, dtype_of<T>)) {
    if (!w.bias.defined()) return;
    const Tensor bias = w.bias.detach();
    bias_.narrow(0, 0, 2 * hidden_).copy_(bias.narrow(0, 0, 2 * hidden_));
    bias_.narrow(0, 3 * hidden_, hidden_).copy_(bias.narrow(0, 2 * hidden_, hidden_));
  }

  void forward(std::int64_t rows, Rows<const T> before, T* gate_rows, T* q, T* space, Rows<T> state) const {
    const std::int64_t h = hidden_;
    product_->multiply({before.first, rows, h, before.stride}, T(0), {space, rows, 3 * h});
    for (std::int64_t i = 0; i < rows; ++i) {
      kernels::gru_gates(h, space + i * 3 * h, rill::detail::raw<const T>(bias_), before[i],
                         gate_rows + i * 3 * h, q + i * h, state[i]);
    }
  }

  void backward(std::int64_t rows, Rows<const T> before, Rows<const T> dstate, const T* q, T* hidden,
                T* gate_rows, T* dh, T*) const {
    const std::int64_t h = hidden_;
    for (std::int64_t i = 0; i < rows; ++i) {
      T* from_hidden = hidden + i * 3 * h;
      T* from_input = gate_rows + i * 3 * h;
      std::copy_n(q + i * h, h, from_input + 2 * h);
      kernels::gru_gates_backward(h, before[i], dstate[i], from_hidden, from_input + 2 * h, dh + i * h);
      std::copy_n(from_hidden, 2 * h, from_input);
    }
    product_->multiply({hidden, rows, 3 * h}, T(1), {dh, rows, h});
  }

 private:
  std::int64_t hidden_;
  std::shared_ptr<const PackedMatrix<T>> product_;
  Tensor bias_;  // [4H], as the kernel wants it: here the state's side alone
};

template <class T>
class RauStep {
 public:
  static constexpr std::int64_t gates = 4;

  RauStep(Pass pass, const DecoderWeights& w, std::int64_t batch)
      : hidden_(w.hidden.size(0)),
        product_(packed_for<T>(pass, w.hidden, batch)),
        candidate_(packed_for<T>(pass, w.candidate, batch)),
        bias_(zeros({4 * hidden_}, dtype_of<T>)) {}

  void forward(std::int64_t rows, Rows<const T> before, T* gate_rows, T* q, T* space, Rows<T> state) const {
    const std::int64_t h = hidden_;
    product_->multiply({before.first, rows, h, before.stride}, T(0), {space, rows, 4 * h});
    for (std::int64_t i = 0; i < rows; ++i) {
      kernels::rau_gates(h, space + i * 4 * h, rill::detail::raw<const T>(bias_), gate_rows + i * 4 * h,
                         q + i * h);
    }
    candidate_->multiply({gate_rows + 2 * h, rows, h, 4 * h}, T(1), {gate_rows + 3 * h, rows, h, 4 * h});
    for (std::int64_t i = 0; i < rows; ++i) kernels::rau_state(h, before[i], gate_rows + i * 4 * h, state[i]);
  }

  void backward(std::int64_t rows, Rows<const T> before, Rows<const T> dstate, const T* q, T* hidden,
                T* gate_rows, T* dh, T* space) const {
    const std::int64_t h = hidden_;
    for (std::int64_t i = 0; i < rows; ++i) {
      kernels::rau_state_backward(h, before[i], dstate[i], hidden + i * 4 * h, space + i * h, dh + i * h);
    }
    candidate_->multiply({hidden + 3 * h, rows, h, 4 * h}, T(1), {space, rows, h});
    for (std::int64_t i = 0; i < rows; ++i) {
      T* from_hidden = hidden + i * 4 * h;
      T* from_input = gate_rows + i * 4 * h;
      std::copy_n(q + i * h, h, from_input + 2 * h);
      kernels::rau_gates_backward(h, space + i * h, from_hidden, from_input + 2 * h);
      std::copy_n(from_hidden, 2 * h, from_input);
      std::copy_n(from_hidden + 3 * h, h, from_input + 3 * h);
    }
    product_->multiply({hidden, rows, 4 * h}, T(1), {dh, rows, h});
  }

 private:
  std::int64_t hidden_;
  std::shared_ptr<const PackedMatrix<T>> product_, candidate_;
  Tensor bias_;  // [4H] of zeros: the input side has it all
};

}  // namespace rill::nn::detail
