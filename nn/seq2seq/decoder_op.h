/// Shared by the forward and backward pass of decoder_sequence. Internal.
#pragma once

#include <optional>

#include <rill/core/autograd.h>
#include <rill/nn/attention/attention_rows.h>
#include <rill/nn/recurrent/sequence_rows.h>
#include <rill/nn/recurrent/step.h>

namespace rill::nn::detail {

/// The sizes of one call: H, G, A, M, E and S of the header, and the columns of the features.
struct DecoderSizes {
  std::int64_t hidden, gates, query, memory, embedded, positions, features;

  std::int64_t flops() const noexcept {
    return 2 * (hidden * (query + gates) + memory * gates) + positions * (25 * query + 4 * memory);
  }
};

/// Saved for the backward pass.
struct DecoderKept {
  const Unit& unit;
  SequenceRows rows;
  DecoderSizes sizes;
  bool relu;
  Tensor queries;       ///< [N, A]
  GateGradients gates;  ///< the activations until backward runs
  Tensor c;             ///< [N, H], cell states after each row, of units that have them
  Saved attention, v, ih, hh;
  std::optional<Saved> inner;
  Saved embedded;
  Saved initial_h;  ///< by position
  std::optional<Saved> initial_c;
  Saved features, weights, keys, values;
  std::optional<Saved> lengths;
};

/// Inputs of the recorded op; those of the unit's weights begin with its ih.
enum DecoderInput : int {
  input_embedded,
  input_h,
  input_c,
  input_attention,
  input_v,
  input_keys,
  input_values,
  input_ih
};

/// The previous states of the rows of step t from position `begin` on: the initial ones [B, H] by position at
/// step 0, then those of the previous step, which are in `later` with row stride `stride`.
template <class T>
kernels::RowView<const T> states_before(const SequenceRows& rows, std::int64_t hidden, const T* initial,
                                        const T* later, std::int64_t stride, std::int64_t t,
                                        std::int64_t begin) noexcept {
  if (t == 0) return {initial + begin * hidden, hidden};
  return {later + (rows.first(t - 1) + begin) * stride, stride};
}

/// The gradients of decoder_sequence from those of its results. Overwrites the saved activations unless the
/// graph is kept.
void decoder_backward(DecoderKept& kept, Outputs dy, Grads& d);

}  // namespace rill::nn::detail
