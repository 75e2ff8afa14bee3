/// A recurrent decoder with attention to the source.
///
/// Equations of one step (the attention's are in attention.h), with token y, previous state h and memory m:
///   e       = dropout(embedding(y))
///   context = attention of h over m
///   h'      = unit(relu([e; context]), h)               GRU, LSTM (with its cell state) or RAU
///   log p   = log_softmax(out [h'; context])            with `output_embedding`: out [h'; context; e]
/// Under teacher forcing the whole recurrence is one op, followed by the output layer and the loss.
#pragma once

#include <cstdint>
#include <optional>

#include <rill/nn/attention/attention.h>
#include <rill/nn/layers/dropout.h>
#include <rill/nn/layers/embedding.h>
#include <rill/nn/layers/linear.h>
#include <rill/nn/module.h>
#include <rill/nn/recurrent/recurrent.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// Options of AttentionDecoder.
struct AttentionDecoderOptions {
  std::int64_t vocabulary = 0;      ///< V
  std::int64_t embedding_dim = 0;   ///< E
  std::int64_t hidden_size = 0;     ///< H
  std::int64_t memory_size = 0;     ///< M, of the encoder outputs; 0: hidden_size
  std::int64_t attention_size = 0;  ///< A; 0: hidden_size
  double dropout = 0.1;             ///< of the embeddings
  double features_dropout = 0;      ///< of the inputs of readout and output layer
  Cell cell = Cell::gru;            ///< recurrent unit
  bool attention = true;            ///< false: the context is the first position of the memory at every step
  bool relu_input = true;           ///< the unit reads relu([e; context]); false: [e; context] itself
  bool output_embedding = false;    ///< the output layer reads [h'; context; e]
  std::int64_t readout_size = 0;    ///< a layer dropout(tanh(readout(..))) of this size before `out`; 0: none
  std::optional<std::int64_t> padding_idx =
      std::nullopt;  ///< token whose embedding is 0 and gets no gradient
};

/// The inputs of the output layer for T steps.
struct DecoderFeatures {
  Tensor concat;         ///< [T, B, H + M (+ E)]: states, contexts and, with `output_embedding`, embeddings
  Tensor weights;        ///< [T, B, S], of the attention
  RecurrentState state;  ///< after the last step, in the shape of the initial state
  std::int64_t hidden_size = 0;  ///< H
  std::int64_t memory_size = 0;  ///< M

  Tensor states() const { return concat.narrow(2, 0, hidden_size); }              ///< [T, B, H]
  Tensor contexts() const { return concat.narrow(2, hidden_size, memory_size); }  ///< [T, B, M]
};

/// The result of one step.
struct DecoderStep {
  Tensor log_probs;      ///< [B, V]
  RecurrentState state;  ///< in the shape of the argument
  Tensor weights;        ///< [B, 1, S]
};

struct DecoderOutputs;

/// A recurrent decoder with additive attention; parameters `embedding.weight`, `attn.v`, `attn.attn.weight`,
/// `attn.attn.bias`, those of the unit under its name (`gru.weight_ih_l0` …), `out.weight`, `out.bias` and,
/// if there is one, those of `readout`.
///
/// Token ids are int64. The state is h (an LSTM's h and c), [B, H] or [1, B, H]. Throws naming both sides if
/// state, memory and tokens do not match. T = 0 and B = 0 give empty results.
class AttentionDecoder final : public Module {
 public:
  /// Throws unless the sizes are positive and the dropouts are in 0 … 1.
  AttentionDecoder(AttentionDecoderOptions options, Rng& rng);

  /// The memory that the other functions attend to, computed once per source. encoder_outputs [S, B, M];
  /// lengths [B] int64 in 0 … S, or undefined.
  Memory prepare(const Tensor& encoder_outputs, const Tensor& lengths = Tensor()) const;

  /// One step: tokens [B].
  DecoderStep step(const Tensor& tokens, const RecurrentState& state, const Memory& memory) const;
  /// All steps of tokens [T, B] under teacher forcing.
  DecoderFeatures features(const Tensor& tokens, const RecurrentState& state, const Memory& memory) const;
  /// Log-probabilities [.., V] of the next tokens.
  Tensor log_probs(const DecoderFeatures& features) const;
  Tensor log_probs(const Tensor& tokens, const RecurrentState& state, const Memory& memory) const;
  /// Cross entropy with targets [T, B], without materializing the scores [T·B, V]. `ignore_index` marks
  /// padding targets.
  Tensor loss(const DecoderFeatures& features, const Tensor& targets,
              const CrossEntropyOptions& options = {}) const;
  Tensor loss(const Tensor& tokens, const RecurrentState& state, const Memory& memory, const Tensor& targets,
              const CrossEntropyOptions& options = {}) const;

  const AttentionDecoderOptions& options() const noexcept { return options_; }  ///< options
  void members(Members& m) override;

 private:
  DecoderOutputs run(const Tensor& tokens, const Tensor& lengths, const RecurrentState& state,
                     const Memory& memory) const;
  DecoderOutputs run_attending(const Tensor& tokens, const Tensor& lengths, const RecurrentState& state,
                               const Memory& memory) const;
  DecoderOutputs run_without_attention(const Tensor& tokens, const Tensor& lengths,
                                       const RecurrentState& state, const Memory& memory) const;
  RecurrentState unit_state(const RecurrentState& state) const;
  Tensor read_out(const Tensor& features) const;
  Tensor loss_of_rows(const Tensor& features, const Tensor& targets,
                      const CrossEntropyOptions& options) const;

  AttentionDecoderOptions options_;
  Embedding embedding_;
  Dropout dropout_;
  std::optional<AdditiveAttention> attention_;  // nullopt: the context is constant
  Recurrent unit_;
  Dropout features_dropout_;
  std::optional<Linear> readout_;
  Linear out_;
};

}  // namespace rill::nn

#pragma GCC visibility pop
