/// One step of a unit on some rows of a batch: products and kernels. Also helpers shared by the ops that run
/// steps.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include <rill/core/autograd.h>
#include <rill/core/ops/packed_weight.h>
#include <rill/nn/recurrent/unit.h>

namespace rill::nn::detail {

template <class T>
T* raw_or_null(const Tensor& t) noexcept {
  return t.defined() ? rill::detail::raw<T>(t) : nullptr;
}

enum class Pass : std::uint8_t { forward, backward };

/// w [k, n] packed for products with rows of a batch, or its transpose for the backward pass.
template <class T>
std::shared_ptr<const PackedMatrix<T>> packed_for(Pass pass, const Tensor& w, std::int64_t batch) {
  return packed<T>(pass == Pass::forward ? w : w.t(), batch);
}

/// A unit's step with the weights packed for one pass.
template <class T>
class Step {
 public:
  /// hh [H, G] and inner [H, H] (undefined without an inner product) have no history.
  Step(const Unit& unit, Pass pass, const Tensor& hh, const Tensor& inner, std::int64_t batch);

  void forward(const kernels::StepRows<T>& rows) const;
  /// Adds the gradient through h·W_hh to rows.dh if the previous state requires one.
  void backward(const kernels::StepGradients<T>& rows, bool wants_previous = true) const;

 private:
  const Unit& unit_;
  std::int64_t hidden_, width_;
  std::shared_ptr<const PackedMatrix<T>> product_, inner_;
};

/// The biases in the layout of the kernels; see StepRows.
Tensor added_biases(const Unit& unit, const RecurrentWeights& w, std::int64_t hidden, DType dtype);
std::optional<Saved> save_if_defined(const Tensor& t, const char* op);
Tensor restored(const std::optional<Saved>& saved);

/// Throws "op: …" unless the weights match the unit, `input` features and the dtype; returns H.
std::int64_t check_weights(const Unit& unit, const RecurrentWeights& w, std::int64_t input, DType dtype);
/// Throws "op: …" unless t, named `what` in the message, is undefined or has this shape and dtype.
void check_fits(const char* op, const char* what, const Tensor& t, const Shape& shape, DType dtype);

/// The gates of all rows after the backward pass.
struct GateGradients {
  Tensor gates;      ///< [rows, G], those of the hidden products
  Tensor q;          ///< [rows, H], gradient of the candidate's input side, if it differs
  Tensor candidate;  ///< [rows, H], with an inner product: the candidate

  /// A copy that the backward pass can overwrite while the activations are still needed.
  GateGradients clone() const { return {gates.clone(), q.defined() ? q.clone() : q, candidate}; }
};

/// The number of op inputs for a unit's weights, in the order of `weight_inputs`.
constexpr int weights_per_unit = 5;
/// ih, hh, bias_ih, bias_hh, inner.
std::array<TensorRef, weights_per_unit> weight_inputs(const RecurrentWeights& w);
/// The gradients of hh, inner and the biases; h [rows, H] are the previous states, `at` the op's input ih.
/// Afterwards the gates' columns are the gradients of the input side.
void weight_gradients(const Unit& unit, const GateGradients& g, const Tensor& h, int at, Grads& d);

}  // namespace rill::nn::detail
