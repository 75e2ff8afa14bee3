#include <algorithm>

#include <rill/core/ops.h>
#include <rill/core/ops/matmul_into.h>
#include <rill/nn/seq2seq/decoder_kernels.h>
#include <rill/nn/seq2seq/decoder_run.h>

namespace rill::nn::detail {
namespace {

using rill::detail::raw;

/// The gradients in the making. Those of the steps lie in the order of SequenceRows, what goes on from step
/// to step or is summed over them by place.
struct Gradients {
  Tensor gates, state, query;  // [N, G], [N, G] of h·W, [N, A]
  Tensor before;               // [N, H], the states that the weights were multiplied with
  Tensor read;                 // [N, M], likewise the contexts
  Tensor contexts;             // [B, T, M]
  Tensor shares;               // [B, T, S], the attention's weights by place
  Tensor dh;                   // [B, H]
  Tensor v;                    // [B, A]
  Tensor keys, values;         // [S, B, A], [S, B, M]
  Tensor scores, space;        // [B, S], [B, max(H, M)]

  /// Where the graph is `kept_on`, what the forward pass left must stay as it is.
  Gradients(const DecoderKept& kept, bool kept_on, bool wants_keys, bool wants_values) {
    const DecoderSizes& s = kept.sizes;
    const DType dtype = kept.workings.gates.dtype();
    const std::int64_t n = kept.rows.count(), batch = kept.rows.batch(), steps = kept.rows.steps();
    gates = empty({n, s.gates}, dtype);
    // The gates make room for their gradients; not a RAU's, whose candidates are multiplied with at the end.
    const bool in_place = !kept_on && kept.cell == Cell::gru;
    state = in_place ? kept.workings.gates : empty({n, s.gates}, dtype);
    query = empty({n, s.query}, dtype);
    before = empty({n, s.hidden}, dtype);
    read = kept.relu ? empty({n, s.memory}, dtype) : kept.joined().narrow(1, s.hidden, s.memory);
    contexts = empty({batch, steps, s.memory}, dtype);
    shares = empty({batch, steps, s.positions}, dtype);
    dh = empty({batch, s.hidden}, dtype);
    v = zeros({batch, s.query}, dtype);
    if (wants_keys) keys = zeros({s.positions, batch, s.query}, dtype);
    if (wants_values) values = empty({s.positions, batch, s.memory}, dtype);
    scores = empty({batch, s.positions}, dtype);
    space = empty({batch, std::max(s.hidden, s.memory)}, dtype);
  }

  /// Once the steps are done: what the weights' gradients do not read makes room for them.
  void release_steps() { contexts = shares = scores = space = Tensor(); }
};

template <class T, class Step>
struct Backward {
  const DecoderKept& kept;
  const Step& step;
  AttentionRows<T> sources;
  const PackedMatrix<T>* query;    // [A, H]; null without attention
  const PackedMatrix<T>* context;  // [G, M]
  const T* v;
  const T* start;
  const T* joined;
  const T* weights;
  const T* djoined;
  const T* dweights;  // null: none
  const T* dlast;     // null: none
  Gradients& g;

  /// From the gates' gradients of `count` rows to those of their contexts.
  void contexts_backward(std::int64_t t, std::int64_t row, std::int64_t begin, std::int64_t count) const {
    const DecoderSizes& s = kept.sizes;
    const std::int64_t steps = kept.rows.steps();
    const Rows<T> to{raw<T>(g.contexts) + (begin * steps + t) * s.memory, steps * s.memory};
    const Rows<const T> seen{joined + row * s.joined() + s.hidden, s.joined()};
    for (std::int64_t i = 0; i < count; ++i) {
      std::copy_n(djoined + (row + i) * s.joined() + s.hidden, s.memory, to[i]);
      if (kept.relu) kernels::relu_row(s.memory, seen[i], raw<T>(g.read) + (row + i) * s.memory);
    }
    const MatrixView<const T> dgates{raw<T>(g.gates) + row * s.gates, count, s.gates};
    if (!kept.relu) return context->multiply(dgates, T(1), {to.first, count, s.memory, to.stride});
    T* through = raw<T>(g.space) + begin * g.space.size(1);
    context->multiply(dgates, T(0), {through, count, s.memory});
    for (std::int64_t i = 0; i < count; ++i)
      kernels::relu_row_backward(s.memory, seen[i], through + i * s.memory, to[i]);
  }

  /// From the contexts' gradients to those of the queries and, through them, of the states before.
  void attention_backward(std::int64_t t, std::int64_t row, std::int64_t begin, std::int64_t count) const {
    const DecoderSizes& s = kept.sizes;
    const std::int64_t steps = kept.rows.steps(), batch = kept.rows.batch();
    const T* queries = raw<T>(kept.workings.queries) + row * s.query;
    T* dqueries = raw<T>(g.query) + row * s.query;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t place = begin + i, sequence = kept.rows.sequence(place);
      const kernels::AttentionGradients<T> to{
          .query = dqueries + i * s.query,
          .v = raw<T>(g.v) + place * s.query,
          .keys = g.keys.defined() ? raw<T>(g.keys) + sequence * s.query : nullptr,
          .key_stride = batch * s.query};
      const T* dshare = dweights ? dweights + (row + i) * s.positions : nullptr;
      kernels::attend_backward(sources[sequence], queries + i * s.query, v, weights + (row + i) * s.positions,
                               raw<const T>(g.contexts) + (place * steps + t) * s.memory, dshare,
                               raw<T>(g.scores) + place * s.positions, to);
    }
    query->multiply({dqueries, count, s.query}, T(1), {raw<T>(g.dh) + begin * s.hidden, count, s.hidden});
  }

  void step_backward(std::int64_t t, std::int64_t begin, std::int64_t count) const {
    const DecoderSizes& s = kept.sizes;
    const std::int64_t row = kept.rows.first(t) + begin;
    const Rows<const T> before = states_before(kept.rows, s, start, joined, t, begin);
    for (std::int64_t i = 0; i < count; ++i) {
      std::copy_n(before[i], s.hidden, raw<T>(g.before) + (row + i) * s.hidden);
      std::copy_n(weights + (row + i) * s.positions, s.positions,
                  raw<T>(g.shares) + ((begin + i) * kept.rows.steps() + t) * s.positions);
    }
    const T* gates = raw<T>(kept.workings.gates) + row * s.gates;
    T* state = raw<T>(g.state) + row * s.gates;
    if (state != gates) std::copy_n(gates, count * s.gates, state);
    step.backward(count, before, {djoined + row * s.joined(), s.joined()},
                  raw<T>(kept.workings.q) + row * s.hidden, state, raw<T>(g.gates) + row * s.gates,
                  raw<T>(g.dh) + begin * s.hidden, raw<T>(g.space) + begin * g.space.size(1));
    contexts_backward(t, row, begin, count);
    if (query) attention_backward(t, row, begin, count);
  }

  void operator()(std::int64_t begin, std::int64_t end) const {
    const DecoderSizes& s = kept.sizes;
    for (std::int64_t place = begin; place < end; ++place) {
      T* dh = raw<T>(g.dh) + place * s.hidden;
      if (dlast) {
        std::copy_n(dlast + kept.rows.sequence(place) * s.hidden, s.hidden, dh);
      } else {
        std::fill_n(dh, s.hidden, T(0));
      }
    }
    for (std::int64_t t = kept.rows.steps() - 1; t >= 0; --t) {
      const std::int64_t count = std::min(end, kept.rows.active(t)) - begin;
      if (count > 0) step_backward(t, begin, count);
    }
    if (!g.values.defined()) return;
    for (std::int64_t place = begin; place < end; ++place) {
      const std::int64_t steps = kept.rows.steps();
      values_gradient<T>(sources, kept.rows.sequence(place), kept.rows.length(place),
                         raw<const T>(g.shares) + place * steps * s.positions,
                         raw<const T>(g.contexts) + place * steps * s.memory, g.values);
    }
  }
};

template <class T, class Step>
void run_backward(const DecoderKept& kept, const DecoderWeights& w, const Tensor& keys, Outputs dy,
                  Gradients& g) {
  const Step step(Pass::backward, w, kept.rows.batch());
  const auto query = w.query.defined() ? packed_for<T>(Pass::backward, w.query, kept.rows.batch()) : nullptr;
  const auto context = packed_for<T>(Pass::backward, w.context, kept.rows.batch());
  const Tensor djoined = dy[0].contiguous();
  const Tensor dweights = dy.has(1) && query ? dy[1].contiguous() : Tensor();
  const Tensor dlast = dy.has(2) ? dy[2].contiguous() : Tensor();
  const Tensor lengths = kept.lengths ? (*kept.lengths)() : Tensor();
  const Backward<T, Step> block{.kept = kept,
                                .step = step,
                                .sources = {kept.values(), keys, lengths},
                                .query = query.get(),
                                .context = context.get(),
                                .v = raw_or_null<const T>(w.v),
                                .start = kept.start.template data<T>(),
                                .joined = kept.joined.template data<T>(),
                                .weights = kept.weights.template data<T>(),
                                .djoined = raw<const T>(djoined),
                                .dweights = raw_or_null<const T>(dweights),
                                .dlast = raw_or_null<const T>(dlast),
                                .g = g};
  each_share<T>(kept.rows, 2 * kept.sizes.flops(), block);
  g.release_steps();
}

Tensor restored(const std::optional<Saved>& saved) { return saved ? (*saved)() : Tensor(); }

/// The gradient of the first states in the order of the batch.
Tensor by_sequence(const SequenceRows& rows, const Tensor& by_place) {
  if (!rows.ragged()) return by_place;
  std::vector<std::int64_t> place(static_cast<std::size_t>(rows.batch()));
  for (std::int64_t i = 0; i < rows.batch(); ++i) place[static_cast<std::size_t>(rows.sequence(i))] = i;
  return index_select(by_place, 0, tensor(place, {rows.batch()}));
}

}  // namespace

void decoder_backward(DecoderKept& kept, Outputs dy, Grads& d) {
  const DecoderSizes& s = kept.sizes;
  const DecoderWeights w{.query = restored(kept.query),
                         .v = restored(kept.v),
                         .context = kept.context(),
                         .hidden = kept.hidden(),
                         .bias = Tensor(),
                         .candidate = restored(kept.candidate)};
  Gradients g(kept, d.keeps_graph(), static_cast<bool>(d[input_keys]), static_cast<bool>(d[input_values]));
  const FlushDenormals flush;
  visit_floating("decoder", g.gates.dtype(), [&]<class T>(Type<T>) {
    const auto run = kept.cell == Cell::gru ? run_backward<T, GruStep<T>> : run_backward<T, RauStep<T>>;
    run(kept, w, restored(kept.keys), dy, g);
  });
  if (!d.keeps_graph()) kept.workings.queries = kept.workings.q = Tensor();
  if (auto to = d[input_embedded]) to.give(dy[0].narrow(1, s.hidden + s.memory, s.embedded));
  if (auto to = d[input_hidden]) to.give(by_sequence(kept.rows, g.dh));
  if (auto to = d[input_query]) matmul_into(to.slot(), g.before.t(), g.query);
  g.query = Tensor();
  if (auto to = d[input_v]) sum_rows_into(to.slot(), g.v);
  if (auto to = d[input_context]) matmul_into(to.slot(), g.read.t(), g.gates);
  if (auto to = d[input_weight]) matmul_into(to.slot(), g.before.t(), g.state);
  if (auto to = d[input_bias]) sum_rows_into(to.slot(), g.state);
  if (auto to = d[input_candidate]) {
    const Tensor candidates = kept.workings.gates.narrow(1, 2 * s.hidden, s.hidden);
    matmul_into(to.slot(), candidates.t(), g.gates.narrow(1, 3 * s.hidden, s.hidden));
  }
  if (auto to = d[input_gates]) to.give(g.gates);
  if (auto to = d[input_keys]) to.give(g.keys);
  if (auto to = d[input_values]) to.give(g.values);
}

}  // namespace rill::nn::detail
