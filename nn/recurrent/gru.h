/// The gated recurrent unit (Cho et al. 2014) with the equations, gate order and names of PyTorch.
///
///   r  = σ(x W_ir + b_ir + h W_hr + b_hr)         reset
///   z  = σ(x W_iz + b_iz + h W_hz + b_hz)         update: 1 keeps the old state
///   n  = tanh(x W_in + b_in + r ∘ (h W_hn + b_hn))
///   h' = (1 - z) ∘ n + z ∘ h
///
/// T steps, B sequences, I input and H hidden features, D directions (2 when bidirectional).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <rill/nn/layers/dropout.h>
#include <rill/nn/module.h>
#include <rill/nn/recurrent/recurrent_layers.h>
#include <rill/nn/recurrent/sequence.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// The weights of one layer in one direction, gates side by side in the order r, z, n.
struct GruWeights {
  Tensor ih;            ///< [I, 3H]
  Tensor hh;            ///< [H, 3H]
  Tensor bias_ih = {};  ///< [3H], or undefined
  Tensor bias_hh = {};  ///< [3H], or undefined
};

namespace reference {

/// The definition of one step, made of plain ops: x [B, I], h [B, H] → h' [B, H].
Tensor gru_step(const Tensor& x, const Tensor& h, const GruWeights& w);

/// What gru_sequence computes, as T times gru_step.
SequenceOutput gru(const Tensor& x, std::span<const GruWeights> directions, const SequenceInputs& given = {});

}  // namespace reference

/// A layer over T steps as one op: x [T, B, I] → output [T, B, D·H], h_n [D, B, H].
///
/// `directions`: forward, or forward and backward (which starts at each sequence's last valid step; its
/// states stand behind the forward ones in the output). given.h0 is [D, B, H]. Past a sequence's length the
/// output is 0 and x gets no gradient. The input side of all steps is one product, the hidden side one small
/// product a step with packed weights; a ragged batch costs its valid steps only. The bits do not depend on
/// the number of threads. Throws "gru: …" for shapes, dtypes or lengths that do not fit.
SequenceOutput gru_sequence(const Tensor& x, std::span<const GruWeights> directions,
                            const SequenceInputs& given = {});

using GRUCellOptions = CellOptions;

/// One step: x [B, I], h [B, H] (absent: zeros) → h' [B, H]. Parameters `weight_ih` [3H, I], `weight_hh` [3H,
/// H], `bias_ih` and `bias_hh` [3H], uniform in ±1/√H.
class GRUCell final : public Module {
 public:
  GRUCell(GRUCellOptions options, Rng& rng);

  Tensor operator()(const Tensor& x, const Tensor& h = Tensor()) const;

  /// The weights as stored, for ops that use them directly.
  const GruWeights& weights() const noexcept { return weights_; }
  const GRUCellOptions& options() const noexcept { return options_; }
  void members(Members& m) const override;

 private:
  GRUCellOptions options_;
  GruWeights weights_;
};

using GRUOptions = RecurrentOptions;

/// Layers of GRUs, each reading the states of the one before: x [T, B, I] → {output [T, B, D·H], h_n
/// [layers·D, B, H]}.
///
/// Parameters, for layer k: `weight_ih_lk` [3H, I or D·H], `weight_hh_lk` [3H, H], `bias_ih_lk` and
/// `bias_hh_lk` [3H], the backward direction's with `_reverse` behind; uniform in ±1/√H.
class GRU final : public Module {
 public:
  /// Throws unless the sizes are at least 1 and dropout is in 0 … 1.
  GRU(GRUOptions options, Rng& rng);

  /// Throws "gru: …" naming both sides when a size of x, h0 or lengths does not fit.
  SequenceOutput operator()(const Tensor& x, const SequenceInputs& given = {}) const;

  /// The weights of a layer as stored, one for each direction.
  std::span<const GruWeights> weights(std::int64_t layer) const;
  const GRUOptions& options() const noexcept { return options_; }
  void members(Members& m) const override;

 private:
  GRUOptions options_;
  std::vector<GruWeights> weights_;  // layer by layer, forward before backward
  Dropout dropout_;
};

}  // namespace rill::nn

#pragma GCC visibility pop
