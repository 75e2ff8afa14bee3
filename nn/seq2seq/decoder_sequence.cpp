#include <rill/nn/seq2seq/decoder_sequence.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <rill/core/ops.h>
#include <rill/core/ops/matmul_into.h>
#include <rill/core/parallel.h>
#include <rill/nn/seq2seq/decoder_kernels.h>
#include <rill/nn/seq2seq/decoder_op.h>

namespace rill::nn {
namespace {

using detail::DecoderSizes;
using detail::Pass;
using detail::states_before;
using kernels::RowView;
using rill::detail::raw;

constexpr const char* op_name = "decoder_sequence";

// --- forward

/// Arrays filled by the steps. If nothing is recorded, `queries`, `q` and `c` have only one row per position,
/// overwritten at every step.
struct Workspace {
  bool kept;
  Tensor gates, queries, q, c;

  Workspace(const detail::Unit& unit, bool keep, const SequenceRows& rows, const DecoderSizes& s, DType dtype)
      : kept(keep), gates(empty({rows.count(), s.gates}, dtype)) {
    const std::int64_t n = keep ? rows.count() : rows.batch();
    queries = empty({n, s.query}, dtype);
    if (unit.candidate >= 0) q = empty({n, s.hidden}, dtype);
    if (unit.states == 2) c = empty({n, s.hidden}, dtype);
  }
  /// The address of row `row` at position `position`.
  std::int64_t at(std::int64_t row, std::int64_t position) const noexcept { return kept ? row : position; }
};

template <class T>
struct DecoderForward {
  const SequenceRows& rows;
  const DecoderSizes& s;
  const detail::Step<T>& step;
  detail::AttentionRows<T> sources;
  const PackedMatrix<T>& query;
  const PackedMatrix<T>& context;
  const PackedMatrix<T>* embedding;  ///< null: the gates already include its part
  const T *v, *bias;
  bool relu;
  const T* read;                   ///< [N, E], the unit's input from the embeddings
  const T* embedded;               ///< [N, E], for the features; null: not part of them
  const T *initial_h, *initial_c;  ///< by position; c null if the unit has none
  const Workspace& workspace;
  T* products;  ///< [B, G]
  T* active;    ///< [B, M], relu(context)
  T *features, *weights, *last_h, *last_c;

  T* row_of(const Tensor& array, std::int64_t row, std::int64_t position) const {
    return array.defined() ? raw<T>(array) + workspace.at(row, position) * array.size(1) : nullptr;
  }

  RowView<const T> h_before(std::int64_t t, std::int64_t begin) const {
    return states_before<T>(rows, s.hidden, initial_h, features, s.features, t, begin);
  }
  RowView<const T> c_before(std::int64_t t, std::int64_t begin) const {
    if (!initial_c) return {};
    if (t == 0 || workspace.kept)
      return states_before<T>(rows, s.hidden, initial_c, raw<T>(workspace.c), s.hidden, t, begin);
    return {raw<const T>(workspace.c) + begin * s.hidden, s.hidden};
  }

  /// Contexts and weights of `count` rows from `row` on, of positions from `begin` on.
  void attend(RowView<const T> h, std::int64_t row, std::int64_t begin, std::int64_t count) const {
    T* queries = row_of(workspace.queries, row, begin);
    query.multiply({h.data, count, s.hidden, h.stride}, T(0), {queries, count, s.query});
    for (std::int64_t i = 0; i < count; ++i) {
      const kernels::AttentionSource<T> source = sources[rows.batch_index(begin + i)];
      T* weight = weights + (row + i) * s.positions;
      T* seen = features + (row + i) * s.features + s.hidden;
      kernels::attend(source, queries + i * s.query, v, weight, seen);
      std::fill(weight + source.positions, weight + s.positions, T(0));
      if (relu) kernels::relu_row(s.memory, seen, active + (begin + i) * s.memory);
    }
  }

  void run_step(std::int64_t t, std::int64_t begin, std::int64_t count) const {
    const std::int64_t row = rows.first(t) + begin;
    const RowView<const T> h = h_before(t, begin);
    attend(h, row, begin, count);
    T* now = features + row * s.features;
    T* gates = raw<T>(workspace.gates) + row * s.gates;
    if (embedding)
      embedding->multiply({read + row * s.embedded, count, s.embedded}, T(0), {gates, count, s.gates});
    const RowView<const T> seen = relu ? RowView<const T>{active + begin * s.memory, s.memory}
                                       : RowView<const T>{now + s.hidden, s.features};
    context.multiply({seen.data, count, s.memory, seen.stride}, T(1), {gates, count, s.gates});
    step.forward({.count = count,
                  .hidden = s.hidden,
                  .h = h,
                  .c = c_before(t, begin),
                  .bias = bias,
                  .products = products + begin * s.gates,
                  .gates = gates,
                  .q = row_of(workspace.q, row, begin),
                  .next_h = {now, s.features},
                  .next_c = {row_of(workspace.c, row, begin), s.hidden}});
    if (!embedded) return;
    for (std::int64_t i = 0; i < count; ++i) {
      std::copy_n(embedded + (row + i) * s.embedded, s.embedded, now + i * s.features + s.hidden + s.memory);
    }
  }

  void operator()(std::size_t, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t t = 0; t < rows.steps(); ++t) {
      const std::int64_t count = std::min(end, rows.active(t)) - begin;
      if (count <= 0) break;
      run_step(t, begin, count);
    }
    for (std::int64_t position = begin; position < end; ++position) {
      const std::int64_t length = rows.length(position), to = rows.batch_index(position) * s.hidden;
      std::copy_n(h_before(length, position).data, s.hidden, last_h + to);
      if (last_c) std::copy_n(c_before(length, position).data, s.hidden, last_c + to);
    }
  }
};

/// The operands of one call, detached; initial states by position.
struct DecoderOperands {
  Tensor embedded, read, initial_h, initial_c;
  Tensor attention, v, ih, hh, inner, bias;
  Memory memory;
};

template <class T>
void run_forward(const detail::Unit& unit, const SequenceRows& rows, const DecoderSizes& s,
                 const DecoderOperands& in, const DecoderReading& reading, const Workspace& workspace,
                 DecoderOutputs& out) {
  const std::int64_t batch = rows.batch();
  const detail::Step<T> step(unit, Pass::forward, in.hh, in.inner, batch);
  const auto query = packed<T>(in.attention.narrow(0, 0, s.hidden), batch);
  const auto context = packed<T>(in.ih.narrow(0, s.embedded, s.memory), batch);
  const Tensor of_embedding = in.ih.narrow(0, 0, s.embedded);
  const bool single = rows.steps() == 1;  // decoding: the packed weights will be reused
  const auto embedding = single ? packed<T>(of_embedding, batch) : nullptr;
  if (!single) matmul_into({workspace.gates, 0}, in.read, of_embedding);
  const Tensor products = empty({batch, s.gates}, dtype_of<T>),
               active = empty({batch, s.memory}, dtype_of<T>);
  const DecoderForward<T> chunk{.rows = rows,
                                .s = s,
                                .step = step,
                                .sources = {in.memory.values, in.memory.keys, in.memory.lengths},
                                .query = *query,
                                .context = *context,
                                .embedding = embedding.get(),
                                .v = raw<const T>(in.v),
                                .bias = raw<const T>(in.bias),
                                .relu = reading.relu_input,
                                .read = raw<const T>(in.read),
                                .embedded = reading.output_embedding ? raw<const T>(in.embedded) : nullptr,
                                .initial_h = raw<const T>(in.initial_h),
                                .initial_c = detail::raw_or_null<const T>(in.initial_c),
                                .workspace = workspace,
                                .products = raw<T>(products),
                                .active = raw<T>(active),
                                .features = raw<T>(out.features),
                                .weights = raw<T>(out.weights),
                                .last_h = raw<T>(out.state.h),
                                .last_c = detail::raw_or_null<T>(out.state.c)};
  rows.for_each_chunk(s.flops(), dtype_of<T>, 1, chunk);
}

// --- the op

void check_is(const char* what, const Tensor& t, const Shape& wanted, DType dtype) {
  check(t.defined(), "decoder: {} of shape {} are missing", what, wanted);
  check(t.shape() == wanted && t.dtype() == dtype, "decoder: {} are {} {}; the other sizes ask for {} {}",
        what, name(t.dtype()), t.shape(), name(dtype), wanted);
}

DecoderSizes check_decoder(const detail::Unit& unit, const SequenceRows& rows, const DecoderInputs& in,
                           const DecoderWeights& w, const Memory& memory, const DecoderReading& reading) {
  const Tensor &h = in.state.h, &e = in.embedded;
  check(h.defined() && h.dim() == 2 && h.size(0) == rows.batch(),
        "decoder: {} sequences, initial states {}; they must be [batch, size] of the same batch",
        rows.batch(), h.defined() ? h.shape() : Shape{});
  const DType dtype = h.dtype();
  check(e.defined() && e.dim() == 2 && e.size(0) == rows.count() && e.dtype() == dtype,
        "decoder: embeddings {}; {} rows need {} [{}, E]", e.defined() ? e.shape() : Shape{}, rows.count(),
        name(dtype), rows.count());
  check(w.v.defined() && w.v.dim() == 1, "decoder: the attention's v must be a vector");
  const std::int64_t size = w.v.size(0);
  detail::check_memory("decoder", memory, rows.batch(), size, dtype);
  const std::int64_t width = memory.values.size(2);
  const std::int64_t hidden = detail::check_weights(unit, w.unit, e.size(1) + width, dtype);
  check_is("initial states", h, {rows.batch(), hidden}, dtype);
  if (in.state.c.defined()) check_is("initial cell states", in.state.c, h.shape(), dtype);
  check(unit.states == 2 || !in.state.c.defined(), "decoder: a {} has no cell state; leave c out",
        unit.module);
  check_is("the attention weights", w.attention, {hidden + width, size}, dtype);
  check_is("the attention's v", w.v, {size}, dtype);
  return {.hidden = hidden,
          .gates = unit.gates * hidden,
          .query = size,
          .memory = width,
          .embedded = e.size(1),
          .positions = memory.steps(),
          .features = hidden + width + (reading.output_embedding ? e.size(1) : 0)};
}

Tensor contiguous_or_none(const Tensor& t) { return t.defined() ? t.detach().contiguous() : t; }

DecoderOperands operands_of(const detail::Unit& unit, const SequenceRows& rows, const DecoderSizes& s,
                            const DecoderInputs& in, const DecoderWeights& w, const Memory& memory,
                            bool relu) {
  DecoderOperands o{.embedded = in.embedded.detach().contiguous(),
                    .read = {},
                    .initial_h = rows.by_position(in.state.h),
                    .initial_c = in.state.c.defined() ? rows.by_position(in.state.c) : Tensor(),
                    .attention = w.attention.detach(),
                    .v = w.v.detach().contiguous(),
                    .ih = w.unit.ih.detach(),
                    .hh = w.unit.hh.detach(),
                    .inner = w.unit.inner.defined() ? w.unit.inner.detach() : Tensor(),
                    .bias = detail::added_biases(unit, w.unit, s.hidden, in.embedded.dtype()),
                    .memory = {.values = detail::dense_rows(memory.values.detach()),
                               .keys = detail::dense_rows(memory.keys.detach()),
                               .lengths = contiguous_or_none(memory.lengths)}};
  o.read = relu ? rill::relu(o.embedded) : o.embedded;
  if (unit.states == 2 && !o.initial_c.defined())
    o.initial_c = zeros({rows.batch(), s.hidden}, o.embedded.dtype());
  return o;
}

detail::DecoderKept keep(const detail::Unit& unit, const SequenceRows& rows, const DecoderSizes& s, bool relu,
                         const DecoderOperands& o, const Workspace& workspace, const DecoderOutputs& out) {
  return {.unit = unit,
          .rows = rows,
          .sizes = s,
          .relu = relu,
          .queries = workspace.queries,
          .gates = {.gates = workspace.gates, .q = workspace.q, .candidate = {}},
          .c = workspace.c,
          .attention = Saved(o.attention, op_name),
          .v = Saved(o.v, op_name),
          .ih = Saved(o.ih, op_name),
          .hh = Saved(o.hh, op_name),
          .inner = detail::save_if_defined(o.inner, op_name),
          .embedded = Saved(o.embedded, op_name),
          .initial_h = Saved(o.initial_h, op_name),
          .initial_c = detail::save_if_defined(o.initial_c, op_name),
          .features = Saved(out.features, op_name),
          .weights = Saved(out.weights, op_name),
          .keys = Saved(o.memory.keys, op_name),
          .values = Saved(o.memory.values, op_name),
          .lengths = detail::save_if_defined(o.memory.lengths, op_name)};
}

}  // namespace

DecoderOutputs decoder_sequence(Cell cell, const SequenceRows& rows, const DecoderInputs& inputs,
                                const DecoderWeights& weights, const Memory& memory,
                                const DecoderReading& reading) {
  const detail::Unit& unit = detail::unit_of(cell);
  const DecoderSizes s = check_decoder(unit, rows, inputs, weights, memory, reading);
  const DType dtype = inputs.embedded.dtype();
  const bool has_c = unit.states == 2;
  std::vector<TensorRef> from{inputs.embedded, inputs.state.h, inputs.state.c, weights.attention,
                              weights.v,       memory.keys,    memory.values};
  for (const TensorRef& t : detail::weight_inputs(weights.unit)) from.push_back(t);
  const bool recording = is_recording(from);
  DecoderOutputs out{.features = empty({rows.count(), s.features}, dtype),
                     .weights = empty({rows.count(), s.positions}, dtype),
                     .state = {empty({rows.batch(), s.hidden}, dtype),
                               has_c ? empty({rows.batch(), s.hidden}, dtype) : Tensor()}};
  const Workspace workspace(unit, recording, rows, s, dtype);
  DecoderOperands operands;
  {
    const NoGrad no_grad;
    const FlushDenormals flush;
    operands = operands_of(unit, rows, s, inputs, weights, memory, reading.relu_input);
    visit_floating("decoder", dtype, [&]<class T>(Type<T>) {
      run_forward<T>(unit, rows, s, operands, reading, workspace, out);
    });
  }
  const auto recorded = [&](auto outputs) {
    if (!recording) return record(op_name, std::move(outputs), {}, [](Outputs, Grads&) {});
    return record("decoder_sequence", std::move(outputs), from,
                  [kept = keep(unit, rows, s, reading.relu_input, operands, workspace, out)](
                      Outputs dy, Grads& d) mutable { detail::decoder_backward(kept, dy, d); });
  };
  if (!has_c) {
    auto [features, attended, h] = recorded(std::array{out.features, out.weights, out.state.h});
    return {features, attended, h};
  }
  auto [features, attended, h, c] = recorded(std::array{out.features, out.weights, out.state.h, out.state.c});
  return {features, attended, {h, c}};
}

namespace reference {

DecoderOutputs decoder_sequence(Cell cell, const SequenceRows& rows, const DecoderInputs& inputs,
                                const DecoderWeights& weights, const Memory& memory,
                                const DecoderReading& reading) {
  check(!rows.ragged(), "reference: decoder_sequence is defined for sequences that have all steps");
  const std::int64_t batch = rows.batch();
  RecurrentState state = inputs.state;
  if (detail::unit_of(cell).states == 2 && !state.c.defined())
    state.c = zeros(state.h.shape(), state.h.dtype());
  std::vector<Tensor> features, attended;
  for (std::int64_t t = 0; t < rows.steps(); ++t) {
    const Tensor query = matmul(state.h, weights.attention.narrow(0, 0, state.h.size(1)));
    const Attended seen = reference::additive_attention(query, weights.v, memory);
    const Tensor embedded = inputs.embedded.narrow(0, t * batch, batch);
    const Tensor x = cat({embedded, seen.context}, 1);
    state = recurrent_step(cell, reading.relu_input ? relu(x) : x, state, weights.unit);
    features.push_back(reading.output_embedding ? cat({state.h, seen.context, embedded}, 1)
                                                : cat({state.h, seen.context}, 1));
    attended.push_back(seen.weights.squeeze(1));
  }
  return {cat(features, 0), cat(attended, 0), state};
}

}  // namespace reference

}  // namespace rill::nn
