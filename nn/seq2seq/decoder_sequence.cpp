#include <rill/nn/seq2seq/decoder_sequence.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <rill/core/ops.h>
#include <rill/nn/recurrent/gru.h>
#include <rill/nn/recurrent/rau.h>
#include <rill/nn/seq2seq/decoder_kernels.h>
#include <rill/nn/seq2seq/decoder_run.h>

namespace rill::nn {
namespace {

using detail::AttentionRows;
using detail::each_share;
using detail::Pass;
using detail::raw_or_null;
using detail::Rows;
using detail::states_before;
using Sizes = detail::DecoderSizes;
using Workings = detail::DecoderWorkings;

// --- forward

template <class T, class Step>
struct Forward {
  const SequenceRows& rows;
  const Sizes& s;
  const Step& step;
  AttentionRows<T> sources;
  const PackedMatrix<T>* query;  // null without attention
  const PackedMatrix<T>* context;
  const T* v;
  bool relu;
  const T* inputs;
  const T* embedded;  // null: not part of the result
  const T* start;     // first states, by place
  const Workings& workings;
  T* space;   // [B, G]
  T* active;  // [B, M], relu(context)
  T* joined;
  T* weights;
  T* last;

  /// Contexts and weights of `count` rows from `row` on, whose sequences stand from place `begin` on.
  void look(Rows<const T> before, std::int64_t row, std::int64_t begin, std::int64_t count) const {
    T* queries = rill::detail::raw<T>(workings.queries) + workings.at(row, begin) * s.query;
    if (query)
      query->multiply({before.first, count, s.hidden, before.stride}, T(0), {queries, count, s.query});
    for (std::int64_t i = 0; i < count; ++i) {
      const kernels::AttentionSource<T> source = sources[rows.sequence(begin + i)];
      T* share = weights + (row + i) * s.positions;
      T* seen = joined + (row + i) * s.joined() + s.hidden;
      if (query) {
        kernels::attend(source, queries + i * s.query, v, share, seen);
        std::fill(share + source.positions, share + s.positions, T(0));
      } else {
        std::copy_n(source.values, s.memory, seen);
        std::fill(share, share + s.positions, T(0));
        share[0] = 1;
      }
      if (relu) kernels::relu_row(s.memory, seen, active + (begin + i) * s.memory);
    }
  }

  void operator()(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t t = 0; t < rows.steps(); ++t) {
      const std::int64_t count = std::min(end, rows.active(t)) - begin;
      if (count <= 0) break;
      const std::int64_t row = rows.first(t) + begin;
      const Rows<const T> before = states_before(rows, s, start, static_cast<const T*>(joined), t, begin);
      look(before, row, begin, count);
      T* now = joined + row * s.joined();
      T* gates = rill::detail::raw<T>(workings.gates) + workings.at(row, begin) * s.gates;
      std::copy_n(inputs + row * s.gates, count * s.gates, gates);
      const Rows<const T> seen = relu ? Rows<const T>{active + begin * s.memory, s.memory}
                                      : Rows<const T>{now + s.hidden, s.joined()};
      context->multiply({seen.first, count, s.memory, seen.stride}, T(1), {gates, count, s.gates});
      step.forward(count, before, gates,
                   rill::detail::raw<T>(workings.q) + workings.at(row, begin) * s.hidden,
                   space + begin * s.gates, {now, s.joined()});
      if (embedded == nullptr) continue;
      for (std::int64_t i = 0; i < count; ++i) {
        std::copy_n(embedded + (row + i) * s.embedded, s.embedded,
                    now + i * s.joined() + s.hidden + s.memory);
      }
    }
    for (std::int64_t place = begin; place < end; ++place) {
      const std::int64_t length = rows.length(place);
      const T* state = states_before(rows, s, start, static_cast<const T*>(joined), length, place).first;
      std::copy_n(state, s.hidden, last + rows.sequence(place) * s.hidden);
    }
  }
};

/// The first states in the order of places.
Tensor by_place(const SequenceRows& rows, const Tensor& states) {
  const Tensor plain = states.detach().contiguous();
  if (!rows.ragged()) return plain;
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows.batch()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = rows.sequence(static_cast<std::int64_t>(i));
  return index_select(plain, 0, tensor(order, {rows.batch()}));
}

template <class T, class Step>
void run_forward(const SequenceRows& rows, const Sizes& s, const DecoderInputs& in, const DecoderWeights& w,
                 const Memory& memory, bool relu, const Tensor& start, const Workings& workings,
                 DecoderOutputs& out) {
  const Step step(Pass::forward, w, rows.batch());
  const auto query =
      w.query.defined() ? detail::packed_for<T>(Pass::forward, w.query, rows.batch()) : nullptr;
  const auto context = detail::packed_for<T>(Pass::forward, w.context, rows.batch());
  const Tensor space = empty({rows.batch(), s.gates}, dtype_of<T>),
               active = empty({rows.batch(), s.memory}, dtype_of<T>);
  const Forward<T, Step> block{.rows = rows,
                               .s = s,
                               .step = step,
                               .sources = {memory.values, memory.keys, memory.lengths},
                               .query = query.get(),
                               .context = context.get(),
                               .v = raw_or_null<const T>(w.v),
                               .relu = relu,
                               .inputs = rill::detail::raw<const T>(in.gates),
                               .embedded = raw_or_null<const T>(in.embedded),
                               .start = rill::detail::raw<const T>(start),
                               .workings = workings,
                               .space = rill::detail::raw<T>(space),
                               .active = rill::detail::raw<T>(active),
                               .joined = out.joined.mutable_data<T>(),
                               .weights = out.weights.mutable_data<T>(),
                               .last = out.hidden.mutable_data<T>()};
  each_share<T>(rows, s.flops(), block);
}

void check_shape(const char* what, const Tensor& t, const Shape& wanted, DType dtype) {
  check(t.defined(), "decoder: {} of shape {} are missing", what, wanted);
  check(t.shape() == wanted && t.dtype() == dtype, "decoder: {} are {} {}; the other sizes ask for {} {}",
        what, name(t.dtype()), t.shape(), name(dtype), wanted);
}

void check_sequence(Cell cell, const SequenceRows& rows, const DecoderInputs& in, const DecoderWeights& w,
                    const Memory& memory) {
  check(in.hidden.defined() && in.hidden.dim() == 2, "decoder: the first states must be [batch, size]");
  check(in.hidden.size(0) == rows.batch(),
        "decoder: {} sequences, first states {}; they must be the same batch", rows.batch(),
        in.hidden.shape());
  const DType dtype = in.hidden.dtype();
  const std::int64_t h = in.hidden.size(1), gates = (cell == Cell::gru ? 3 : 4) * h;
  const std::int64_t size = w.query.defined() ? w.query.size(-1) : 0;
  detail::check_memory("decoder", memory, rows.batch(), size, dtype);
  check_shape("the inputs of the gates", in.gates, {rows.count(), gates}, dtype);
  check_shape("the context weights", w.context, {memory.values.size(2), gates}, dtype);
  check_shape("the state weights", w.hidden, {h, gates}, dtype);
  if (w.query.defined()) {
    check_shape("the query weights", w.query, {h, size}, dtype);
    check_shape("the attention's v", w.v, {size}, dtype);
  } else {
    check(memory.steps() >= 1, "decoder: the memory {} has no step to take the context from",
          memory.values.shape());
  }
  if (cell == Cell::gru && w.bias.defined()) check_shape("the biases", w.bias, {gates}, dtype);
  if (cell == Cell::rau) check_shape("the candidate weights", w.candidate, {h, h}, dtype);
  if (!in.embedded.defined()) return;
  check(in.embedded.dim() == 2 && in.embedded.size(0) == rows.count() && in.embedded.dtype() == dtype,
        "decoder: embeddings {} {}; {} rows need {} [{}, E]", name(in.embedded.dtype()), in.embedded.shape(),
        rows.count(), name(dtype), rows.count());
}

/// A matrix that can be packed: one of its strides is 1.
Tensor packable(const Tensor& w) {
  return !w.defined() || w.stride(0) == 1 || w.stride(1) == 1 ? w : w.contiguous();
}

Tensor contiguous_or_none(const Tensor& t) { return t.defined() ? t.contiguous() : t; }

std::optional<Saved> save_if(const Tensor& t, const char* op) {
  return t.defined() ? std::optional(Saved(t, op)) : std::nullopt;
}

}  // namespace

DecoderOutputs decoder_sequence(Cell cell, const SequenceRows& rows, const DecoderInputs& inputs,
                                const DecoderWeights& weights, const Memory& memory, bool relu_context) {
  check_sequence(cell, rows, inputs, weights, memory);
  const DecoderInputs in{inputs.gates.contiguous(), contiguous_or_none(inputs.embedded), inputs.hidden};
  const DecoderWeights w{.query = packable(weights.query),
                         .v = contiguous_or_none(weights.v),
                         .context = packable(weights.context),
                         .hidden = packable(weights.hidden),
                         .bias = weights.bias,
                         .candidate = packable(weights.candidate)};
  const Memory from{.values = detail::dense_rows(memory.values),
                    .keys = detail::dense_rows(memory.keys),
                    .lengths = contiguous_or_none(memory.lengths)};
  const Sizes s{.hidden = w.hidden.size(0),
                .gates = w.hidden.size(1),
                .query = w.query.defined() ? w.query.size(1) : 0,
                .memory = from.values.size(2),
                .embedded = in.embedded.defined() ? in.embedded.size(1) : 0,
                .positions = from.steps()};
  const DType dtype = in.gates.dtype();
  DecoderOutputs out{.joined = empty({rows.count(), s.joined()}, dtype),
                     .weights = empty({rows.count(), s.positions}, dtype),
                     .hidden = empty({rows.batch(), s.hidden}, dtype)};
  const Tensor start = by_place(rows, in.hidden);
  const bool recording = is_recording({in.gates, in.embedded, in.hidden, w.query, w.v, w.context, w.hidden,
                                       w.bias, w.candidate, from.keys, from.values});
  Workings workings(recording, rows, s, dtype);
  const FlushDenormals flush;
  visit_floating("decoder", dtype, [&]<class T>(Type<T>) {
    const auto run =
        cell == Cell::gru ? run_forward<T, detail::GruStep<T>> : run_forward<T, detail::RauStep<T>>;
    run(rows, s, in, w, from, relu_context, start, workings, out);
  });
  std::array results{out.joined, out.weights, out.hidden};
  if (!recording) {
    record("decoder_sequence", std::move(results), {}, [](Outputs, Grads&) {});
    return out;
  }
  constexpr const char* op = "decoder_sequence";
  detail::DecoderKept kept{cell,
                           rows,
                           s,
                           relu_context,
                           std::move(workings),
                           Saved(w.context, op),
                           Saved(w.hidden, op),
                           Saved(start, op),
                           Saved(out.joined, op),
                           Saved(out.weights, op),
                           Saved(from.values, op),
                           save_if(w.query, op),
                           save_if(w.v, op),
                           save_if(w.candidate, op),
                           save_if(from.keys, op),
                           save_if(from.lengths, op)};
  auto [joined, shares, hidden] = record(
      "decoder_sequence", std::move(results),
      {in.gates, in.embedded, in.hidden, w.query, w.v, w.context, w.hidden, w.bias, w.candidate, from.keys,
       from.values},
      [kept = std::move(kept)](Outputs dy, Grads& d) mutable { detail::decoder_backward(kept, dy, d); });
  return {joined, shares, hidden};
}

namespace reference {
namespace {

/// The unit matrix: with it as input weight, the definition of a cell takes the gates' input side as it is.
Tensor identity(std::int64_t n, DType dtype) {
  return eq(arange(n).unsqueeze(0), arange(n).unsqueeze(1)).to(dtype);
}

Tensor cell_step(Cell cell, const Tensor& gates, const Tensor& h, const DecoderWeights& w) {
  const Tensor as_given = identity(gates.size(1), gates.dtype());
  if (cell == Cell::gru) return gru_step(gates, h, {.ih = as_given, .hh = w.hidden, .bias_hh = w.bias});
  return rau_step(gates, h, {.ih = as_given, .hh = w.hidden, .aa = w.candidate});
}

}  // namespace

DecoderOutputs decoder_sequence(Cell cell, const SequenceRows& rows, const DecoderInputs& inputs,
                                const DecoderWeights& weights, const Memory& memory, bool relu_context) {
  check(!rows.ragged(), "reference: decoder_sequence is defined for sequences that have all steps");
  const std::int64_t batch = rows.batch();
  Tensor h = inputs.hidden;
  std::vector<Tensor> joined, looked;
  for (std::int64_t t = 0; t < rows.steps(); ++t) {
    Attended seen{memory.values.select(0, 0), Tensor()};
    if (weights.query.defined()) {
      seen = reference::additive_attention(matmul(h, weights.query), weights.v, memory);
      looked.push_back(seen.weights.squeeze(1));
    } else {
      looked.push_back(cat({ones({batch, 1}, h.dtype()), zeros({batch, memory.steps() - 1}, h.dtype())}, 1));
    }
    const Tensor read = relu_context ? relu(seen.context) : seen.context;
    const Tensor gates = inputs.gates.narrow(0, t * batch, batch) + matmul(read, weights.context);
    h = cell_step(cell, gates, h, weights);
    std::vector<Tensor> parts{h, seen.context};
    if (inputs.embedded.defined()) parts.push_back(inputs.embedded.narrow(0, t * batch, batch));
    joined.push_back(cat(parts, 1));
  }
  return {cat(joined, 0), cat(looked, 0), h};
}

}  // namespace reference

}  // namespace rill::nn
