/// Common base of recurrent layers with any unit: weights, states, options and layers.
///
/// T steps, B sequences, I input and H hidden features, D directions (2 when bidirectional), G gate columns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <rill/core/tensor.h>
#include <rill/nn/layers/dropout.h>
#include <rill/nn/module.h>

#pragma GCC visibility push(default)

namespace rill::nn {

namespace detail {
struct Unit;
}

/// The stored weights of one layer in one direction: gates concatenated in the unit's order.
struct RecurrentWeights {
  Tensor ih = {};       ///< [I, G]
  Tensor hh = {};       ///< [H, G]
  Tensor bias_ih = {};  ///< [G], or undefined
  Tensor bias_hh = {};  ///< [G], or undefined; always for a unit with one bias (RAU)
  Tensor inner = {};    ///< [H, H], only for a unit that multiplies its candidate (RAU's W_aa)
};

/// The state of recurrent layers: h and, for LSTM, the cell state c, of the same shape.
struct RecurrentState {
  /// Undefined tensors mean zeros.
  RecurrentState(Tensor hidden = Tensor(), Tensor cell = Tensor())
      : h(std::move(hidden)), c(std::move(cell)) {}

  Tensor h;  ///< [B, H], or [layers · D, B, H]
  Tensor c;  ///< undefined for units without a cell state

  /// The number of sequences.
  std::int64_t batch() const { return h.size(-2); }
  /// The state of the sequences `index` [N] (int64) in that order; a sequence may repeat, as in beam search.
  RecurrentState rows(const Tensor& index) const;
};

/// The inputs of a recurrent layer besides x.
struct RecurrentInputs {
  RecurrentState state = {};  ///< initial state [layers · D, B, H]; undefined tensors mean zeros
  Tensor lengths = {};  ///< valid steps of each sequence, int64 [B] in 0 … T, in any order; undefined: T
};

/// The results of a recurrent layer.
struct RecurrentOutput {
  Tensor output;  ///< states of the last layer [T, B, D·H]; 0 past a sequence's length
  /// Last state of each layer and direction [layers · D, B, H]; the initial one if the length is 0.
  RecurrentState last;
};

/// RecurrentInputs for units whose state is h alone: `gru(x, {.h0 = state, .lengths = lengths})`.
struct SequenceInputs {
  Tensor h0 = {};       ///< initial state [layers · D, B, H]; undefined: zeros
  Tensor lengths = {};  ///< as in RecurrentInputs
};

/// RecurrentOutput for units whose state is h alone.
struct SequenceOutput {
  Tensor output;  ///< as in RecurrentOutput
  Tensor h_n;     ///< last state of each layer and direction [layers · D, B, H]
};

/// The options of GRU, LSTM and RAU, with PyTorch's names.
struct RecurrentLayersOptions {
  std::int64_t input_size = 0;   ///< I
  std::int64_t hidden_size = 0;  ///< H
  std::int64_t num_layers = 1;   ///< stacked
  bool bias = true;              ///< with biases
  bool batch_first = false;      ///< x and output are [B, T, ..]; states stay [.., B, H]
  double dropout = 0;            ///< on the output of each layer but the last, in training mode
  bool bidirectional = false;    ///< adds a backward direction

  /// D.
  std::int64_t directions() const noexcept { return bidirectional ? 2 : 1; }
  /// The features that layer k reads.
  std::int64_t input_of(std::int64_t layer) const noexcept {
    return layer == 0 ? input_size : directions() * hidden_size;
  }
};

/// The options of GRUCell, LSTMCell and RAUCell.
struct RecurrentCellOptions {
  std::int64_t input_size = 0;   ///< I
  std::int64_t hidden_size = 0;  ///< H
  bool bias = true;              ///< with biases
};

/// The base of GRU, LSTM and RAU: stacked layers, each reading the states of the previous one.
class RecurrentLayers : public Module {
 public:
  /// The stored weights of a layer, one for each direction.
  std::span<const RecurrentWeights> weights(std::int64_t layer) const;
  const RecurrentLayersOptions& options() const noexcept { return options_; }  ///< options
  void members(Members& m) override;

 protected:
  /// Throws unless the sizes are at least 1 and dropout is in 0 … 1.
  RecurrentLayers(const detail::Unit& unit, const RecurrentLayersOptions& options, Rng& rng);
  /// x [T, B, I] (batch first: [B, T, I]). Throws "unit: …" naming both sides if x, state or lengths do not
  /// match.
  RecurrentOutput run(const Tensor& x, const RecurrentInputs& given) const;
  SequenceOutput run(const Tensor& x, const SequenceInputs& given) const;

 private:
  const detail::Unit* unit_;
  RecurrentLayersOptions options_;
  std::vector<RecurrentWeights> weights_;  // layer by layer, forward before backward
  Dropout dropout_;
};

/// The base of GRUCell, LSTMCell and RAUCell: one step.
class RecurrentCell : public Module {
 public:
  /// The stored weights.
  const RecurrentWeights& weights() const noexcept { return weights_; }
  const RecurrentCellOptions& options() const noexcept { return options_; }  ///< options
  void members(Members& m) override;

 protected:
  /// Throws unless the sizes are at least 1.
  RecurrentCell(const detail::Unit& unit, const RecurrentCellOptions& options, Rng& rng);
  /// x [B, I], state [B, H] (undefined: zeros) → the new state.
  RecurrentState run(const Tensor& x, const RecurrentState& state) const;

 private:
  const detail::Unit* unit_;
  RecurrentCellOptions options_;
  RecurrentWeights weights_;
};

namespace detail {
/// The maximum size of inputs and states; products of such sizes do not overflow.
constexpr std::int64_t largest_size = std::int64_t{1} << 28;
/// Whether a size is in 1 … largest_size.
constexpr bool is_size(std::int64_t size) noexcept { return size >= 1 && size <= largest_size; }
}  // namespace detail

}  // namespace rill::nn

#pragma GCC visibility pop
