/// The recurrence of the attention decoder over all steps of known tokens, as one op.
///
/// The output layer and the loss follow it. The embeddings' part of the gates is one product for all steps;
/// then, per step and chunk of the batch: the query, the attention, the product of the context, the unit's
/// step. Backward runs the steps in reverse order, then computes each weight's gradient as one product.
#pragma once

#include <rill/core/tensor.h>
#include <rill/nn/attention/attention.h>
#include <rill/nn/recurrent/recurrent.h>
#include <rill/nn/recurrent/sequence_rows.h>

namespace rill::nn {

/// The stored weights.
struct DecoderWeights {
  Tensor attention;       ///< [H + M, A]; the first H rows project the state
  Tensor v;               ///< [A]
  RecurrentWeights unit;  ///< ih is [E + M, G]: rows of the embedding, then of the context
};

/// N counts the rows of all steps (SequenceRows::count).
struct DecoderInputs {
  Tensor embedded;       ///< [N, E]
  RecurrentState state;  ///< [B, H], before the first step; an undefined c is zero
};

struct DecoderOutputs {
  Tensor features;       ///< [N, H + M (+ E)]: state, context and, if requested, embedding of each row
  Tensor weights;        ///< [N, S], of the attention
  RecurrentState state;  ///< [B, H], after each sequence's last step
};

/// Which inputs the unit and the output layer read.
struct DecoderReading {
  bool relu_input = true;         ///< the unit reads relu([e; context]) instead of [e; context]
  bool output_embedding = false;  ///< features include the embedding
};

/// Runs the recurrence: context = attention of h over the memory, state' = unit([e; context], state). Throws
/// "decoder: …" or "gru: …" (the unit's name) naming both sides if shapes or dtypes do not match.
DecoderOutputs decoder_sequence(Cell cell, const SequenceRows& rows, const DecoderInputs& inputs,
                                const DecoderWeights& weights, const Memory& memory,
                                const DecoderReading& reading);

namespace reference {
/// The definition, composed of core ops step by step. All sequences have all steps.
DecoderOutputs decoder_sequence(Cell cell, const SequenceRows& rows, const DecoderInputs& inputs,
                                const DecoderWeights& weights, const Memory& memory,
                                const DecoderReading& reading);
}  // namespace reference

}  // namespace rill::nn
