/// Sequence to sequence: a recurrent encoder and a decoder with attention to it.
///
///   outputs, last = encoder(dropout(embedding(source)))    layers of any unit, one or both directions
///   state_0       = bridge(last state of the last layer)
///   p(target)     = decoder(target shifted by one, state_0, outputs)
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <rill/nn/layers/dropout.h>
#include <rill/nn/layers/embedding.h>
#include <rill/nn/layers/linear.h>
#include <rill/nn/module.h>
#include <rill/nn/recurrent/recurrent.h>
#include <rill/nn/seq2seq/beam_search.h>
#include <rill/nn/seq2seq/decoder.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// How the encoder's two directions are combined: added or concatenated.
enum class Directions : std::uint8_t { sum, concat };
/// The decoder's initial h from the encoder's last states: the sum of the directions, or
/// tanh(bridge(concatenation)). Cell states are summed.
enum class Bridge : std::uint8_t { sum, project };

/// Options of Seq2Seq.
struct Seq2SeqOptions {
  std::int64_t source_vocabulary = 0;       ///< tokens of the source
  std::int64_t target_vocabulary = 0;       ///< tokens of the target
  std::int64_t embedding_dim = 0;           ///< of both languages
  std::int64_t hidden_size = 0;             ///< H, of encoder and decoder
  std::int64_t num_layers = 1;              ///< of the encoder
  bool bidirectional = false;               ///< adds a backward direction
  Directions directions = Directions::sum;  ///< of the encoder's outputs: the memory has H or 2H features
  Bridge bridge = Bridge::sum;  ///< from the last state of the encoder to the first of the decoder
  Cell cell = Cell::gru;        ///< of encoder and decoder
  double dropout = 0.1;         ///< of both languages' embeddings
  double layer_dropout = 0;     ///< between the encoder's layers
  // Options of the decoder; see AttentionDecoderOptions. Without attention its context is the encoder's last
  // state.
  bool attention = true;                                   ///< with attention
  std::int64_t attention_size = 0;                         ///< A; 0: hidden_size
  double features_dropout = 0;                             ///< of the decoder's features
  bool relu_input = true;                                  ///< relu before the gates
  bool output_embedding = false;                           ///< the embedding is part of the features
  std::int64_t readout_size = 0;                           ///< 0: no readout layer
  std::optional<std::int64_t> padding_idx = std::nullopt;  ///< of both languages
};

/// A batch of encoded sources.
struct Encoded {
  Memory memory;         ///< for attention
  RecurrentState state;  ///< [B, H]
};

/// An encoder and a decoder with attention; parameters `embedding.weight` and those of `encoder`, `bridge`
/// (if it projects) and `decoder`.
///
/// Token ids are int64, time-major: source [S, B] with lengths [B] in 0 … S (undefined: all S), target_in and
/// target_out [T, B], the same tokens shifted by one. Positions past a source's length cost nothing and have
/// no effect.
class Seq2Seq final : public Module {
 public:
  /// Throws unless sizes are positive and dropouts are in 0 … 1.
  Seq2Seq(Seq2SeqOptions options, Rng& rng);

  /// Runs the encoder, whose result search() and the decoder start from.
  Encoded encode(const Tensor& source, const Tensor& lengths = Tensor()) const;
  /// Cross entropy under teacher forcing; `ignore_index` marks padding targets.
  Tensor loss(const Tensor& source, const Tensor& lengths, const Tensor& target_in, const Tensor& target_out,
              const CrossEntropyOptions& options = {}) const;
  /// Translates: greedily, or with a beam. Dropout is off in eval().
  std::vector<std::vector<Hypothesis>> search(const Tensor& source, const Tensor& lengths = Tensor(),
                                              const BeamSearchOptions& options = {}) const;

  const AttentionDecoder& decoder() const noexcept { return decoder_; }  ///< the decoder
  const Seq2SeqOptions& options() const noexcept { return options_; }    ///< options
  void members(Members& m) override;

 private:
  Seq2SeqOptions options_;
  Embedding embedding_;
  Dropout dropout_;
  Recurrent encoder_;
  std::optional<Linear> bridge_;
  AttentionDecoder decoder_;
};

}  // namespace rill::nn

#pragma GCC visibility pop
