/// The recurrent attention unit: a gated recurrent unit with an attention gate on the candidate state (after
/// Zhong, Yue and Ling, "Recurrent attention unit", 2018; here the gate also reads the candidate).
///
///   r  = σ(x W_xr + h W_hr + b_r)                        reset
///   z  = σ(x W_xz + h W_hz + b_z)                        update: 1 takes the new state
///   h~ = tanh(x W_xh + r ∘ (h W_hh) + b_h)               candidate
///   a  = σ(x W_xa + h W_ha + h~ W_aa + b_a)              attention to the candidate
///   h' = (1 - z) ∘ h + z ∘ a ∘ h~
///
/// T steps, B sequences, I input and H hidden features, D directions (2 when bidirectional).
#pragma once

#include <rill/nn/recurrent/recurrent_layers.h>

#pragma GCC visibility push(default)

namespace rill::nn {

using RAUCellOptions = RecurrentCellOptions;  ///< of one step
using RAUOptions = RecurrentLayersOptions;    ///< of layers

namespace reference {
/// The definition of one step, composed of core ops: x [B, I], h [B, H] → h' [B, H].
Tensor rau_step(const Tensor& x, const Tensor& h, const RecurrentWeights& w);
}  // namespace reference

/// One step.
///
/// Parameters `weight_xr` [I, H], `weight_hr` [H, H], `weight_xz`, `weight_hz`, `weight_xh`, `weight_hh`,
/// `weight_xa`, `weight_ha` likewise, `weight_aa` [H, H], each orthogonal; `bias_r`, `bias_z`, `bias_h`,
/// `bias_a` [H], zeros.
class RAUCell final : public RecurrentCell {
 public:
  /// Throws unless both sizes are at least 1.
  RAUCell(const RAUCellOptions& options, Rng& rng);
  /// x [B, I], h [B, H] (undefined: zeros) → h' [B, H].
  Tensor operator()(const Tensor& x, const Tensor& h = Tensor()) const;
};

/// Stacked RAU layers, each reading the states of the previous one.
///
/// Parameters `cells.k.weight_xr` … `cells.k.bias_a` for layer k, those of the backward direction
/// `cells.k_reverse.…`; see RAUCell.
class RAU final : public RecurrentLayers {
 public:
  /// Throws unless the sizes are at least 1 and dropout is in 0 … 1.
  RAU(const RAUOptions& options, Rng& rng);
  /// x [T, B, I] → output [T, B, D·H], h_n [layers · D, B, H]. Throws "rau: …" naming both sides if the sizes
  /// of x, h0 or lengths do not match.
  SequenceOutput operator()(const Tensor& x, const SequenceInputs& given = {}) const;
};

namespace detail {
extern const Unit rau_unit;
}

}  // namespace rill::nn

#pragma GCC visibility pop
