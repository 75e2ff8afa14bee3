/// The description of a recurrent unit. Sequence op, cells and decoders run any unit.
///
/// A step multiplies the previous state with W_hh, then runs pointwise kernels on the gates. A unit may
/// multiply its candidate by another matrix within the step; its gates are then computed in two parts.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include <rill/nn/module.h>
#include <rill/nn/recurrent/recurrent_layers.h>
#include <rill/nn/recurrent/step_kernels.h>

namespace rill::nn::detail {

/// The pointwise parts of a step. In the forward pass the gates contain x·W_ih and become the values saved
/// for backward; in the backward pass they become the gradients of the hidden products.
template <class T>
struct UnitKernels {
  using Forward = void (*)(const kernels::StepRows<T>&) noexcept;
  using Backward = void (*)(const kernels::StepGradients<T>&) noexcept;

  Forward forward;                    ///< with an inner product, the part before it
  Backward backward;                  ///< with an inner product, the part that remains after it
  Forward forward_inner = nullptr;    ///< after candidate · W_inner was added to the inner gate
  Backward backward_inner = nullptr;  ///< writes the candidate's gradient so far, to which that of the inner
                                      ///< gate · W_innerᵀ is then added
};

struct Unit {
  const char* name;         ///< of the op
  const char* module;       ///< of the layers; the cell's has the suffix "Cell"
  std::int64_t gates;       ///< G = gates · H
  std::int64_t states = 1;  ///< 1: h; 2: h and c
  std::int64_t biases = 2;  ///< 1: there is no bias_hh
  std::int64_t candidate =
      -1;  ///< gate whose hidden product q is multiplied by a reset gate, so that its input
           ///< side has a gradient of its own; -1: none
  std::int64_t inner_gate = -1;  ///< gate that candidate · W_inner is added to; -1: no inner product
  UnitKernels<float> kernels32;
  UnitKernels<double> kernels64;

  /// One step, composed of core ops: x [B, I] and the previous state → the new state.
  RecurrentState (*definition)(const Tensor& x, const RecurrentState& state, const RecurrentWeights& w);
  /// Initial weights that require gradients.
  RecurrentWeights (*make_weights)(const Unit& unit, std::int64_t input, std::int64_t hidden, bool bias,
                                   Rng& rng);
  /// Names the weights of a layer ("0", "0_reverse", …), or of a cell ("").
  void (*list_weights)(Members& m, RecurrentWeights& w, const std::string& layer);

  template <class T>
  const UnitKernels<T>& kernels() const noexcept {
    if constexpr (std::is_same_v<T, float>) {
      return kernels32;
    } else {
      return kernels64;
    }
  }
  bool has_inner() const noexcept { return inner_gate >= 0; }
};

/// PyTorch's initial weights: uniform in ±1/√H.
RecurrentWeights make_uniform_weights(const Unit& unit, std::int64_t input, std::int64_t hidden, bool bias,
                                      Rng& rng);
/// PyTorch's names: weight_ih_l0 [G, I], weight_hh_l0, bias_ih_l0, bias_hh_l0; for a cell, without the layer.
void list_stacked_weights(Members& m, RecurrentWeights& w, const std::string& layer);

/// x·W + b, with optional bias.
Tensor affine(const Tensor& x, const Tensor& w, const Tensor& bias);

}  // namespace rill::nn::detail
