/// The gated recurrent unit (Cho et al. 2014) with the equations, gate order and names of PyTorch.
///
///   r  = σ(x W_ir + b_ir + h W_hr + b_hr)         reset
///   z  = σ(x W_iz + b_iz + h W_hz + b_hz)         update: 1 keeps the old state
///   n  = tanh(x W_in + b_in + r ∘ (h W_hn + b_hn))
///   h' = (1 - z) ∘ n + z ∘ h
///
/// T steps, B sequences, I input and H hidden features, D directions (2 when bidirectional).
#pragma once

#include <rill/nn/recurrent/recurrent_layers.h>

#pragma GCC visibility push(default)

namespace rill::nn {

using GRUCellOptions = RecurrentCellOptions;  ///< of one step
using GRUOptions = RecurrentLayersOptions;    ///< of layers

namespace reference {
/// The definition of one step, composed of core ops: x [B, I], h [B, H] → h' [B, H].
Tensor gru_step(const Tensor& x, const Tensor& h, const RecurrentWeights& w);
}  // namespace reference

/// One step. Parameters `weight_ih` [3H, I], `weight_hh` [3H, H], `bias_ih` and `bias_hh` [3H] with the gates
/// concatenated in the order r, z, n; uniform in ±1/√H.
class GRUCell final : public RecurrentCell {
 public:
  /// Throws unless both sizes are at least 1.
  GRUCell(const GRUCellOptions& options, Rng& rng);
  /// x [B, I], h [B, H] (undefined: zeros) → h' [B, H].
  Tensor operator()(const Tensor& x, const Tensor& h = Tensor()) const;
};

/// Stacked GRU layers, each reading the states of the previous one.
///
/// Parameters, for layer k: `weight_ih_lk` [3H, I or D·H], `weight_hh_lk` [3H, H], `bias_ih_lk` and
/// `bias_hh_lk` [3H], those of the backward direction with the suffix `_reverse`; uniform in ±1/√H.
class GRU final : public RecurrentLayers {
 public:
  /// Throws unless the sizes are at least 1 and dropout is in 0 … 1.
  GRU(const GRUOptions& options, Rng& rng);
  /// x [T, B, I] → output [T, B, D·H], h_n [layers · D, B, H]. Throws "gru: …" naming both sides if the sizes
  /// of x, h0 or lengths do not match.
  SequenceOutput operator()(const Tensor& x, const SequenceInputs& given = {}) const;
};

namespace detail {
extern const Unit gru_unit;
}

}  // namespace rill::nn

#pragma GCC visibility pop
