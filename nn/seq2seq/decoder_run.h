/// What the way there and back of decoder_sequence share. Internal to it.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <rill/core/autograd.h>
#include <rill/core/parallel.h>
#include <rill/nn/attention/attention_rows.h>
#include <rill/nn/seq2seq/decoder_cells.h>

namespace rill::nn::detail {

/// The sizes of one call; H of all steps' states, G of the gates, A, M, E and S as in the header.
struct DecoderSizes {
  std::int64_t hidden, gates, query, memory, embedded, positions;
  std::int64_t joined() const noexcept { return hidden + memory + embedded; }
  std::int64_t flops() const noexcept {
    return 2 * (hidden * (query + gates) + memory * gates) + positions * (25 * query + 4 * memory);
  }
};

/// Calls block(begin, end) for shares of the batch, side by side where that pays.
template <class T, class F>
void each_share(const SequenceRows& rows, std::int64_t flops, F&& block) {
  const std::vector<std::int64_t> borders = rows.shares(flops, dtype_of<T>);
  parallel_for(std::ssize(borders) - 1, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const auto share = static_cast<std::size_t>(i);
      block(borders[share], borders[share + 1]);
    }
  });
}

template <class T>
T* raw_or_null(const Tensor& t) noexcept {
  return t.defined() ? rill::detail::raw<T>(t) : nullptr;
}

/// What the steps compute and the gradient needs: a row for each row of SequenceRows, or, where nothing is
/// recorded, only for each place, written over at every step.
struct DecoderWorkings {
  bool kept;
  Tensor queries, gates, q;

  DecoderWorkings(bool keep, const SequenceRows& rows, const DecoderSizes& s, DType dtype) : kept(keep) {
    const std::int64_t n = keep ? rows.count() : rows.batch();
    queries = empty({n, s.query}, dtype);
    gates = empty({n, s.gates}, dtype);
    q = empty({n, s.hidden}, dtype);
  }
  /// Where the rows of step t from place `begin` on lie.
  std::int64_t at(std::int64_t row, std::int64_t begin) const noexcept { return kept ? row : begin; }
};

/// The states before the rows of step t from place `begin` on.
template <class T>
Rows<const T> states_before(const SequenceRows& rows, const DecoderSizes& s, const T* start, const T* joined,
                            std::int64_t t, std::int64_t begin) noexcept {
  if (t == 0) return {start + begin * s.hidden, s.hidden};
  return {joined + (rows.first(t - 1) + begin) * s.joined(), s.joined()};
}

/// What the gradient needs again.
struct DecoderKept {
  Cell cell;
  SequenceRows rows;
  DecoderSizes sizes;
  bool relu;
  DecoderWorkings workings;
  Saved context, hidden, start, joined, weights, values;
  std::optional<Saved> query, v, candidate, keys, lengths;
};

/// Which input of the recorded op is which.
enum DecoderInput : int {
  input_gates,
  input_embedded,
  input_hidden,
  input_query,
  input_v,
  input_context,
  input_weight,
  input_bias,
  input_candidate,
  input_keys,
  input_values
};

/// The gradients of decoder_sequence from those of its three results. Uses up what was kept, unless the graph
/// is.
void decoder_backward(DecoderKept& kept, Outputs dy, Grads& d);

}  // namespace rill::nn::detail
