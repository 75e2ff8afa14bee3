/// The recurrent attention unit: a gated recurrent unit whose candidate state passes an attention gate (after
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

#include <cstdint>
#include <span>
#include <vector>

#include <rill/nn/module.h>
#include <rill/nn/recurrent/recurrent_layers.h>
#include <rill/nn/recurrent/sequence.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// The weights of one layer in one direction, gates side by side in the order r, z, h, a.
struct RauWeights {
  Tensor ih;         ///< [I, 4H]
  Tensor hh;         ///< [H, 4H]
  Tensor aa;         ///< [H, H], from the candidate to its attention gate
  Tensor bias = {};  ///< [4H], or undefined
};

namespace reference {

/// The definition of one step, made of plain ops: x [B, I], h [B, H] → h' [B, H].
Tensor rau_step(const Tensor& x, const Tensor& h, const RauWeights& w);

/// What rau_sequence computes, as T times rau_step.
SequenceOutput rau(const Tensor& x, std::span<const RauWeights> directions, const SequenceInputs& given = {});

}  // namespace reference

/// A layer over T steps as one op: x [T, B, I] → output [T, B, D·H], h_n [D, B, H].
///
/// `directions`: forward, or forward and backward (which starts at each sequence's last valid step; its
/// states stand behind the forward ones in the output). given.h0 is [D, B, H]. Past a sequence's length the
/// output is 0 and x gets no gradient. The input side of all steps is one product, the hidden side two small
/// products a step with packed weights; a ragged batch costs its valid steps only. The bits do not depend on
/// the number of threads. Throws "rau: …" for shapes, dtypes or lengths that do not fit.
SequenceOutput rau_sequence(const Tensor& x, std::span<const RauWeights> directions,
                            const SequenceInputs& given = {});

using RAUCellOptions = CellOptions;

/// One step: x [B, I], h [B, H] (absent: zeros) → h' [B, H].
///
/// Parameters `weight_xr` [I, H], `weight_hr` [H, H], `weight_xz`, `weight_hz`, `weight_xh`, `weight_hh`,
/// `weight_xa`, `weight_ha` likewise, `weight_aa` [H, H], each orthogonal; `bias_r`, `bias_z`, `bias_h`,
/// `bias_a` [H], zeros.
class RAUCell final : public Module {
 public:
  /// Throws unless the sizes are at least 1.
  RAUCell(RAUCellOptions options, Rng& rng);

  Tensor operator()(const Tensor& x, const Tensor& h = Tensor()) const;

  /// The weights as stored, for ops that use them directly.
  const RauWeights& weights() const noexcept { return weights_; }
  const RAUCellOptions& options() const noexcept { return options_; }
  void members(Members& m) const override;

 private:
  RAUCellOptions options_;
  RauWeights weights_;
};

using RAUOptions = RecurrentOptions;

/// Layers of RAUs, each reading the states of the one before: x [T, B, I] → {output [T, B, D·H], h_n
/// [layers·D, B, H]}.
///
/// Parameters `cells.k.weight_xr` … `cells.k.bias_a` for layer k, the backward direction's
/// `cells.k_reverse.…`; see RAUCell.
class RAU final : public Module {
 public:
  /// Throws unless the sizes are at least 1 and dropout is in 0 … 1.
  RAU(RAUOptions options, Rng& rng);

  /// Throws "rau: …" naming both sides when a size of x, h0 or lengths does not fit.
  SequenceOutput operator()(const Tensor& x, const SequenceInputs& given = {}) const;

  /// The weights of a layer as stored, one for each direction.
  std::span<const RauWeights> weights(std::int64_t layer) const;
  const RAUOptions& options() const noexcept { return options_; }
  void members(Members& m) const override;

 private:
  RAUOptions options_;
  std::vector<RauWeights> weights_;  // layer by layer, forward before backward
  Dropout dropout_;
};

}  // namespace rill::nn

#pragma GCC visibility pop
