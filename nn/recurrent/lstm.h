/// Long short-term memory (Hochreiter and Schmidhuber 1997, with the forget gate of Gers, Schmidhuber and
/// Cummins 2000) with the equations, gate order and names of PyTorch.
///
///   i  = σ(x W_ii + b_ii + h W_hi + b_hi)         input
///   f  = σ(x W_if + b_if + h W_hf + b_hf)         forget: 1 keeps the old cell state
///   g  = tanh(x W_ig + b_ig + h W_hg + b_hg)      candidate
///   o  = σ(x W_io + b_io + h W_ho + b_ho)         output
///   c' = f ∘ c + i ∘ g
///   h' = o ∘ tanh(c')
///
/// T steps, B sequences, I input and H hidden features, D directions (2 when bidirectional).
#pragma once

#include <rill/nn/recurrent/recurrent_layers.h>

#pragma GCC visibility push(default)

namespace rill::nn {

using LSTMCellOptions = RecurrentCellOptions;  ///< of one step
using LSTMOptions = RecurrentLayersOptions;    ///< of layers

namespace reference {
/// The definition of one step, composed of core ops: x [B, I], h and c [B, H] → h' and c' [B, H].
RecurrentState lstm_step(const Tensor& x, const RecurrentState& state, const RecurrentWeights& w);
}  // namespace reference

/// One step. Parameters `weight_ih` [4H, I], `weight_hh` [4H, H], `bias_ih` and `bias_hh` [4H] with the gates
/// concatenated in the order i, f, g, o; uniform in ±1/√H.
class LSTMCell final : public RecurrentCell {
 public:
  /// Throws unless both sizes are at least 1.
  LSTMCell(const LSTMCellOptions& options, Rng& rng);
  /// x [B, I], {h, c} [B, H] (undefined: zeros) → {h', c'} [B, H]: `auto [h, c] = cell(x, {h0, c0})`.
  RecurrentState operator()(const Tensor& x, const RecurrentState& state = {}) const;
};

/// Stacked LSTM layers, each reading the states of the previous one.
///
/// Parameters, for layer k: `weight_ih_lk` [4H, I or D·H], `weight_hh_lk` [4H, H], `bias_ih_lk` and
/// `bias_hh_lk` [4H], those of the backward direction with the suffix `_reverse`; uniform in ±1/√H.
class LSTM final : public RecurrentLayers {
 public:
  /// Throws unless the sizes are at least 1 and dropout is in 0 … 1.
  LSTM(const LSTMOptions& options, Rng& rng);
  /// x [T, B, I] → output [T, B, D·H] and the last h and c [layers · D, B, H]: `auto [output, last] = lstm(x,
  /// {.state = {h0, c0}, .lengths = lengths})`. Throws "lstm: …" naming both sides if the sizes of x, state
  /// or lengths do not match.
  RecurrentOutput operator()(const Tensor& x, const RecurrentInputs& given = {}) const;
};

namespace detail {
extern const Unit lstm_unit;
}

}  // namespace rill::nn

#pragma GCC visibility pop
