#include <algorithm>

#include <rill/core/ops.h>
#include <rill/core/ops/matmul_into.h>
#include <rill/core/parallel.h>
#include <rill/nn/seq2seq/decoder_kernels.h>
#include <rill/nn/seq2seq/decoder_op.h>

namespace rill::nn::detail {
namespace {

using kernels::RowView;
using rill::detail::raw;

/// Intermediate gradients. Those of the steps are in the order of SequenceRows; those carried from step to
/// step, or summed over steps, are by position.
struct DecoderGradients {
  Tensor query;          // [N, A]
  Tensor h;              // [N, H], the states multiplied with the weights
  Tensor read;           // [N, M], the contexts multiplied with the weights
  Tensor contexts;       // [B, T, M]
  Tensor weights;        // [B, T, S], the attention's weights by position
  Tensor dh, dc;         // [B, H]
  Tensor v;              // [B, A]
  Tensor keys, values;   // [S, B, A], [S, B, M]
  Tensor scores, space;  // [B, S], [B, M]

  DecoderGradients(const DecoderKept& kept, bool wants_keys, bool wants_values) {
    const DecoderSizes& s = kept.sizes;
    const DType dtype = kept.queries.dtype();
    const std::int64_t n = kept.rows.count(), batch = kept.rows.batch(), steps = kept.rows.steps();
    query = empty({n, s.query}, dtype);
    h = empty({n, s.hidden}, dtype);
    read = kept.relu ? empty({n, s.memory}, dtype) : kept.features().narrow(1, s.hidden, s.memory);
    contexts = empty({batch, steps, s.memory}, dtype);
    weights = empty({batch, steps, s.positions}, dtype);
    v = zeros({batch, s.query}, dtype);
    if (wants_keys) keys = zeros({s.positions, batch, s.query}, dtype);
    if (wants_values) values = empty({s.positions, batch, s.memory}, dtype);
    scores = empty({batch, s.positions}, dtype);
    space = empty({batch, s.memory}, dtype);
  }

  /// Called after the steps: frees what the weights' gradients do not need.
  void release_steps() { contexts = weights = scores = space = Tensor(); }
};

template <class T>
struct DecoderBackward {
  const DecoderKept& kept;
  const Step<T>& step;
  AttentionRows<T> sources;
  const PackedMatrix<T>& query;    // [A, H]
  const PackedMatrix<T>& context;  // [G, M]
  const T *v, *initial_h, *initial_c, *features, *weights, *dfeatures;
  const T* dweights;  // null: none
  const DecoderGradients& g;

  const DecoderSizes& s = kept.sizes;

  T* row_of(const Tensor& array, std::int64_t row) const {
    return array.defined() ? raw<T>(array) + row * array.size(1) : nullptr;
  }

  /// Swaps the candidate's columns of `count` rows of gates, the gradients of its hidden product, with q,
  /// those of its input side.
  void swap_candidate(std::int64_t row, std::int64_t count) const {
    if (!kept.gates.q.defined()) return;
    for (std::int64_t i = 0; i < count; ++i) {
      T* columns = row_of(kept.gates.gates, row + i) + kept.unit.candidate * s.hidden;
      std::swap_ranges(columns, columns + s.hidden, row_of(kept.gates.q, row + i));
    }
  }

  /// From the gradients of the gates' input side to those of the contexts.
  void contexts_backward(std::int64_t t, std::int64_t row, std::int64_t begin, std::int64_t count) const {
    const std::int64_t steps = kept.rows.steps();
    const RowView<T> to{raw<T>(g.contexts) + (begin * steps + t) * s.memory, steps * s.memory};
    const RowView<const T> seen{features + row * s.features + s.hidden, s.features};
    for (std::int64_t i = 0; i < count; ++i) {
      std::copy_n(dfeatures + (row + i) * s.features + s.hidden, s.memory, to[i]);
      if (kept.relu) kernels::relu_row(s.memory, seen[i], raw<T>(g.read) + (row + i) * s.memory);
    }
    const MatrixView<const T> gates{row_of(kept.gates.gates, row), count, s.gates};
    if (!kept.relu) return context.multiply(gates, T(1), {to.data, count, s.memory, to.stride});
    T* through = row_of(g.space, begin);
    context.multiply(gates, T(0), {through, count, s.memory});
    for (std::int64_t i = 0; i < count; ++i)
      kernels::relu_row_backward(s.memory, seen[i], through + i * s.memory, to[i]);
  }

  /// From the contexts' gradients to those of the queries and, through them, of the previous states.
  void attention_backward(std::int64_t t, std::int64_t row, std::int64_t begin, std::int64_t count) const {
    const std::int64_t steps = kept.rows.steps(), batch = kept.rows.batch();
    const T* queries = row_of(kept.queries, row);
    T* dqueries = row_of(g.query, row);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t position = begin + i, index = kept.rows.batch_index(position);
      const kernels::AttentionGradients<T> to{
          .query = dqueries + i * s.query,
          .v = row_of(g.v, position),
          .keys = g.keys.defined() ? raw<T>(g.keys) + index * s.query : nullptr,
          .key_stride = batch * s.query};
      const T* dweight = dweights ? dweights + (row + i) * s.positions : nullptr;
      kernels::attend_backward(sources[index], queries + i * s.query, v, weights + (row + i) * s.positions,
                               raw<const T>(g.contexts) + (position * steps + t) * s.memory, dweight,
                               row_of(g.scores, position), to);
    }
    query.multiply({dqueries, count, s.query}, T(1), {row_of(g.dh, begin), count, s.hidden});
  }

  void step_backward(std::int64_t t, std::int64_t begin, std::int64_t count) const {
    const std::int64_t row = kept.rows.first(t) + begin;
    const auto h = states_before(kept.rows, s.hidden, initial_h, features, s.features, t, begin);
    for (std::int64_t i = 0; i < count; ++i) {
      std::copy_n(h[i], s.hidden, row_of(g.h, row + i));
      std::copy_n(weights + (row + i) * s.positions, s.positions,
                  raw<T>(g.weights) + ((begin + i) * kept.rows.steps() + t) * s.positions);
    }
    const auto c =
        initial_c ? states_before(kept.rows, s.hidden, initial_c, raw<const T>(kept.c), s.hidden, t, begin)
                  : RowView<const T>();
    step.backward({.count = count,
                   .hidden = s.hidden,
                   .h = h,
                   .c = c,
                   .dy = {dfeatures + row * s.features, s.features},
                   .gates = row_of(kept.gates.gates, row),
                   .q = row_of(kept.gates.q, row),
                   .candidate = row_of(kept.gates.candidate, row),
                   .dh = row_of(g.dh, begin),
                   .dc = row_of(g.dc, begin)});
    swap_candidate(row, count);
    contexts_backward(t, row, begin, count);
    swap_candidate(row, count);
    attention_backward(t, row, begin, count);
  }

  void operator()(std::size_t, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t t = kept.rows.steps() - 1; t >= 0; --t) {
      const std::int64_t count = std::min(end, kept.rows.active(t)) - begin;
      if (count > 0) step_backward(t, begin, count);
    }
    if (!g.values.defined()) return;
    for (std::int64_t position = begin; position < end; ++position) {
      const std::int64_t steps = kept.rows.steps();
      values_gradient<T>(sources, kept.rows.batch_index(position), kept.rows.length(position),
                         raw<const T>(g.weights) + position * steps * s.positions,
                         raw<const T>(g.contexts) + position * steps * s.memory, g.values);
    }
  }
};

template <class T>
void run_backward(const DecoderKept& kept, Outputs dy, DecoderGradients& g) {
  const DecoderSizes& s = kept.sizes;
  const std::int64_t batch = kept.rows.batch();
  const Step<T> step(kept.unit, Pass::backward, kept.hh(), restored(kept.inner), batch);
  const auto query = packed_for<T>(Pass::backward, kept.attention().narrow(0, 0, s.hidden), batch);
  const auto context = packed_for<T>(Pass::backward, kept.ih().narrow(0, s.embedded, s.memory), batch);
  const Tensor dfeatures = dy[0].contiguous(), dweights = dy.has(1) ? dy[1].contiguous() : Tensor();
  const DecoderBackward<T> chunk{.kept = kept,
                                 .step = step,
                                 .sources = {kept.values(), kept.keys(), restored(kept.lengths)},
                                 .query = *query,
                                 .context = *context,
                                 .v = kept.v.template data<T>(),
                                 .initial_h = kept.initial_h.template data<T>(),
                                 .initial_c = kept.initial_c ? kept.initial_c->template data<T>() : nullptr,
                                 .features = kept.features.template data<T>(),
                                 .weights = kept.weights.template data<T>(),
                                 .dfeatures = raw<const T>(dfeatures),
                                 .dweights = raw_or_null<const T>(dweights),
                                 .g = g};
  kept.rows.for_each_chunk(2 * s.flops(), dtype_of<T>, 1, chunk);
  g.release_steps();
}

/// Gradients of ih and the embeddings, from the gates of the input side.
void input_gradients(const DecoderKept& kept, const DecoderGradients& g, const Tensor& dfeatures, Grads& d) {
  const DecoderSizes& s = kept.sizes;
  const Tensor& gates = kept.gates.gates;
  const Tensor embedded = kept.embedded();
  if (auto dih = d[input_ih]) {
    const Slot slot = dih.slot();
    matmul_into({slot.to.narrow(0, 0, s.embedded), slot.beta}, (kept.relu ? relu(embedded) : embedded).t(),
                gates);
    matmul_into({slot.to.narrow(0, s.embedded, s.memory), slot.beta}, g.read.t(), gates);
  }
  auto to = d[input_embedded];
  if (!to) return;
  Tensor dembedded = empty(embedded.shape(), embedded.dtype());
  matmul_into({dembedded, 0}, gates, kept.ih().narrow(0, 0, s.embedded).t());
  if (kept.relu) dembedded = masked_fill(dembedded, le(embedded, 0.0), 0);
  const std::int64_t read = s.hidden + s.memory;
  if (s.features > read) dembedded.add_(dfeatures.narrow(1, read, s.embedded));
  to.give(std::move(dembedded));
}

}  // namespace

void decoder_backward(DecoderKept& kept, Outputs dy, Grads& d) {
  const FlushDenormals flush;
  const DecoderSizes& s = kept.sizes;
  const DType dtype = kept.queries.dtype();
  const GateGradients activations = kept.gates;
  if (d.retains_graph()) kept.gates = kept.gates.clone();
  if (kept.unit.has_inner()) kept.gates.candidate = empty({kept.rows.count(), s.hidden}, dtype);
  DecoderGradients g(kept, static_cast<bool>(d[input_keys]), static_cast<bool>(d[input_values]));
  const auto last_gradient = [&](int output) {
    Tensor to = empty({kept.rows.batch(), s.hidden}, dtype);
    dy.has(output) ? to.copy_(kept.rows.by_position(dy[output])) : to.zero_();
    return to;
  };
  g.dh = last_gradient(2);
  if (kept.unit.states == 2) g.dc = last_gradient(3);
  visit_floating("decoder", dtype, [&]<class T>(Type<T>) { run_backward<T>(kept, dy, g); });
  if (!d.retains_graph()) kept.queries = kept.c = Tensor();
  if (auto to = d[input_h]) to.give(kept.rows.by_batch_index(g.dh));
  if (auto to = d[input_c]) to.give(kept.rows.by_batch_index(g.dc));
  if (auto to = d[input_attention]) matmul_into_rows(to.slot(), 0, g.h.t(), g.query);
  g.query = Tensor();
  if (auto to = d[input_v]) sum_rows_into(to.slot(), g.v);
  if (auto to = d[input_keys]) to.give(g.keys);
  if (auto to = d[input_values]) to.give(g.values);
  weight_gradients(kept.unit, kept.gates, g.h, input_ih, d);
  if (!d.retains_graph()) kept.gates.q = kept.gates.candidate = Tensor();
  input_gradients(kept, g, dy[0], d);
  if (d.retains_graph()) kept.gates = activations;
}

}  // namespace rill::nn::detail
