/// The recurrence of the attention decoder over all steps of given tokens, as one op.
///
/// What does not depend on the recurrence happens outside: the embeddings' part of the gates before, the
/// output layer and the loss behind. Inside, per step and for the batch rows of one thread: a product with
/// the query and gate weights, the attention, a product of the context, the gates. Backward goes down in
/// time, then makes each weight's gradient as one product.
#pragma once

#include <cstdint>

#include <rill/core/tensor.h>
#include <rill/nn/attention/attention.h>
#include <rill/nn/recurrent/sequence.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// The recurrent unit of a decoder.
enum class Cell : std::uint8_t { gru, rau };

/// The weights that a step multiplies, as they are stored; G is 3H for GRU (r, z, n), 4H for RAU (r, z, h,
/// a).
struct DecoderWeights {
  Tensor query;      ///< [H, A], from the state to the attention; undefined without attention
  Tensor v;          ///< [A]; undefined without attention
  Tensor context;    ///< [M, G], from the context to the gates
  Tensor hidden;     ///< [H, G], from the state to the gates
  Tensor bias;       ///< [G], added to the state's part of the gates; GRU only
  Tensor candidate;  ///< [H, H], from the candidate state to the gate a; RAU only
};

/// What the steps read. N counts the rows of all steps (SequenceRows::count).
struct DecoderInputs {
  Tensor gates;     ///< [N, G], the embeddings' part of the gates with its bias
  Tensor embedded;  ///< [N, E], copied into the result; undefined: not part of it
  Tensor hidden;    ///< [B, H], the state before the first step
};

struct DecoderOutputs {
  Tensor joined;   ///< [N, H + M (+ E)]: state, context and embedding of each row
  Tensor weights;  ///< [N, S]
  Tensor hidden;   ///< [B, H], the state after each sequence's last step
};

/// Runs the recurrence: context from the attention of h (without attention: the memory's first position),
/// then h' = cell(gates + relu(context) · W_c, h); without `relu_context` the context itself. Throws
/// "decoder: …" naming both sides when shapes or dtypes do not fit each other.
DecoderOutputs decoder_sequence(Cell cell, const SequenceRows& rows, const DecoderInputs& inputs,
                                const DecoderWeights& weights, const Memory& memory, bool relu_context);

namespace reference {
/// The same, composed of core ops step by step: the definition. All sequences have all steps.
DecoderOutputs decoder_sequence(Cell cell, const SequenceRows& rows, const DecoderInputs& inputs,
                                const DecoderWeights& weights, const Memory& memory, bool relu_context);
}  // namespace reference

}  // namespace rill::nn

#pragma GCC visibility pop
