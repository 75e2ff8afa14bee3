#include <rill/nn/attention/attention.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include <rill/core/ops/matmul_into.h>
#include <rill/core/parallel.h>
#include <rill/nn/attention/attention_rows.h>
#include <rill/nn/init.h>
#include <rill/nn/recurrent/recurrent_layers.h>
#include <rill/nn/recurrent/sequence_rows.h>

namespace rill::nn {
namespace detail {

void check_source(const char* op, const Tensor& values, const Tensor& lengths, std::int64_t width) {
  check(values.dim() == 3, "{}: encoder outputs of shape {}; pass [steps, batch, size]", op, values.shape());
  check(values.size(2) == width, "{}: encoder outputs {} have width {}, the module was made for {}", op,
        values.shape(), values.size(2), width);
  if (!lengths.defined()) return;
  const std::int64_t steps = values.size(0), batch = values.size(1);
  check(lengths.dtype() == int64 && lengths.shape() == Shape{batch},
        "{}: lengths are {} {}, the encoder outputs {}; pass int64 [{}]", op, name(lengths.dtype()),
        lengths.shape(), values.shape(), batch);
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t length = lengths.data<std::int64_t>()[b * lengths.stride(0)];
    check(length >= 0 && length <= steps,
          "{}: length {} of row {} is outside 0..{}, the steps of the encoder outputs {}", op, length, b,
          steps, values.shape());
  }
}

void check_memory(const char* op, const Memory& memory, std::int64_t batch, std::int64_t size, DType dtype) {
  check(memory.values.defined(), "{}: the memory is empty; use prepare()", op);
  check_source(op, memory.values, memory.lengths, memory.values.size(-1));
  check(memory.batch() == batch, "{}: {} rows of hidden, {} of the memory {}; they must be the same batch",
        op, batch, memory.batch(), memory.values.shape());
  check(memory.values.dtype() == dtype, "{}: hidden is {}, the memory {}; use .to({})", op, name(dtype),
        name(memory.values.dtype()), name(dtype));
  if (size == 0) return;
  const Shape keys{memory.steps(), batch, size};
  check(memory.keys.defined() && memory.keys.shape() == keys && memory.keys.dtype() == dtype,
        "{}: the memory's keys are not {} {}; make them with this attention's prepare()", op, name(dtype),
        keys);
}

}  // namespace detail

namespace {

constexpr const char* op_name = "additive_attention";

/// Rows per chunk of the batch, about 10 microseconds of tanh.
std::int64_t rows_grain(std::int64_t steps, std::int64_t size) {
  return std::max<std::int64_t>(1, 16384 / (steps * size + 1));
}

template <class T>
void forward(const Tensor& query, const Tensor& v, const Memory& memory, Tensor& context, Tensor& weights) {
  const detail::AttentionRows<T> sources(memory.values, memory.keys, memory.lengths);
  const std::int64_t steps = sources.steps(), size = sources.size(), width = sources.width();
  const T* queries = rill::detail::raw<const T>(query);
  const T* energy = rill::detail::raw<const T>(v);
  T* contexts = context.mutable_data<T>();
  T* weight_rows = weights.mutable_data<T>();
  parallel_for(query.size(0), rows_grain(steps, size), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      T* row = weight_rows + b * steps;
      kernels::attend(sources[b], queries + b * size, energy, row, contexts + b * width);
      std::fill(row + sources.positions(b), row + steps, T(0));
    }
  });
}

/// Saved for the backward pass.
struct KeptAttention {
  Saved query, v, keys, values, weights;
  std::optional<Saved> lengths;
};

template <class T>
void backward(const KeptAttention& kept, const Tensor& dcontext, const Tensor& dweights, Grads& d) {
  const detail::AttentionRows<T> sources(kept.values(), kept.keys(),
                                         kept.lengths ? (*kept.lengths)() : Tensor());
  const std::int64_t batch = kept.query.shape()[0], size = sources.size(), steps = sources.steps();
  const DType dtype = dtype_of<T>;
  Tensor dquery = empty({batch, size}, dtype), dv_rows = zeros({batch, size}, dtype),
         dscores = empty({batch, steps}, dtype);
  Tensor dkeys = d[2] ? zeros(kept.keys.shape(), dtype) : Tensor();
  const Tensor dvalues = d[3] ? empty(kept.values.shape(), dtype) : Tensor();
  const T *query = kept.query.data<T>(), *v = kept.v.data<T>(), *weights = kept.weights.data<T>();
  const T* from_context = rill::detail::raw<const T>(dcontext);
  const T* from_weights = dweights.defined() ? rill::detail::raw<const T>(dweights) : nullptr;
  T *to_query = dquery.mutable_data<T>(), *to_v = dv_rows.mutable_data<T>(),
    *scores = dscores.mutable_data<T>();
  T* to_keys = dkeys.defined() ? dkeys.mutable_data<T>() : nullptr;
  parallel_for(batch, rows_grain(steps, size), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const kernels::AttentionGradients<T> to{.query = to_query + b * size,
                                              .v = to_v + b * size,
                                              .keys = to_keys ? to_keys + b * size : nullptr,
                                              .key_stride = batch * size};
      kernels::attend_backward(sources[b], query + b * size, v, weights + b * steps,
                               from_context + b * sources.width(),
                               from_weights ? from_weights + b * steps : nullptr, scores + b * steps, to);
      if (dvalues.defined()) {
        detail::values_gradient(sources, b, 1, weights + b * steps, from_context + b * sources.width(),
                                dvalues);
      }
    }
  });
  if (auto g = d[0]) g.give(dquery);
  if (auto g = d[1]) g.give(sum(dv_rows, {0}));
  if (auto g = d[2]) g.give(dkeys);
  if (auto g = d[3]) g.give(dvalues);
}

}  // namespace

Memory Memory::rows(const Tensor& rows) const {
  Memory picked{.values = index_select(values, 1, rows),
                .keys = keys.defined() ? index_select(keys, 1, rows) : Tensor(),
                .lengths = Tensor()};
  if (!lengths.defined()) return picked;
  const std::vector<std::int64_t> all = lengths.to_vector<std::int64_t>();
  std::vector<std::int64_t> chosen;
  for (const std::int64_t row : rows.to_vector<std::int64_t>())
    chosen.push_back(all[static_cast<std::size_t>(row)]);
  picked.lengths = tensor(chosen, {std::ssize(chosen)});
  return picked;
}

Attended additive_attention(const Tensor& query, const Tensor& v, const Memory& memory) {
  check(query.dim() == 2 && v.dim() == 1 && query.size(1) == v.size(0) && v.size(0) >= 1 &&
            v.dtype() == query.dtype(),
        "attention: query {} {} and v {} {} do not fit; they must be [batch, size] and [size] of one dtype",
        name(query.dtype()), query.shape(), name(v.dtype()), v.shape());
  detail::check_memory("attention", memory, query.size(0), query.size(1), query.dtype());
  const Tensor q = query.contiguous(), energy = v.contiguous();
  const Memory dense{.values = detail::dense_rows(memory.values),
                     .keys = detail::dense_rows(memory.keys),
                     .lengths = memory.lengths.defined() ? memory.lengths.contiguous() : Tensor()};
  Tensor context = empty({q.size(0), dense.values.size(2)}, q.dtype());
  Tensor weights = empty({q.size(0), 1, dense.steps()}, q.dtype());
  const FlushDenormals flush;
  visit_floating("attention", q.dtype(),
                 [&]<class T>(Type<T>) { forward<T>(q, energy, dense, context, weights); });
  KeptAttention kept{Saved(q, op_name),          Saved(energy, op_name),
                     Saved(dense.keys, op_name), Saved(dense.values, op_name),
                     Saved(weights, op_name),    std::nullopt};
  if (dense.lengths.defined()) kept.lengths = Saved(dense.lengths, op_name);
  auto [c, w] = record("additive_attention", std::array{context, weights},
                       {q, energy, dense.keys, dense.values}, [kept = std::move(kept)](Outputs dy, Grads& d) {
                         const FlushDenormals flush_again;
                         const Tensor dcontext = dy[0].contiguous();
                         const Tensor dweights = dy.has(1) ? dy[1].contiguous() : Tensor();
                         visit_floating(op_name, dcontext.dtype(),
                                        [&]<class T>(Type<T>) { backward<T>(kept, dcontext, dweights, d); });
                       });
  return {c, w};
}

namespace reference {

Attended additive_attention(const Tensor& query, const Tensor& v, const Memory& memory) {
  const std::int64_t steps = memory.steps(), batch = memory.batch();
  const Tensor energy = tanh(add(query.unsqueeze(0), memory.keys));  // [S, B, A]
  Tensor scores = transpose(matmul(energy, v), 0, 1);                // [B, S]
  Tensor past;
  if (memory.lengths.defined()) {
    past = ge(arange(steps).unsqueeze(0), memory.lengths.unsqueeze(1));
    scores = masked_fill(scores, past, -1e30);  // finite, to avoid NaN in a row without positions
  }
  Tensor weights = softmax(scores, 1);
  if (past.defined()) weights = masked_fill(weights, past, 0);
  const Tensor context = bmm(weights.unsqueeze(1), transpose(memory.values, 0, 1));  // [B, 1, M]
  return {context.reshape({batch, memory.values.size(2)}), weights.unsqueeze(1)};
}

}  // namespace reference

namespace {

AdditiveAttentionOptions with_defaults(AdditiveAttentionOptions o) {
  if (o.memory_size == 0) o.memory_size = o.hidden_size;
  if (o.attention_size == 0) o.attention_size = o.hidden_size;
  check(detail::is_size(o.hidden_size) && detail::is_size(o.memory_size) && detail::is_size(o.attention_size),
        "AdditiveAttention: hidden_size {}, memory_size {} and attention_size {} must be in 1..{}",
        o.hidden_size, o.memory_size, o.attention_size, detail::largest_size);
  return o;
}

/// y [T, B, A] = x [T, B, W] · the W rows of `weight` from `first` on (+ bias) at the valid positions of
/// `rows`; 0 past the lengths.
Tensor project(const SequenceRows& rows, const Tensor& x, const Tensor& weight, std::int64_t first,
               const Tensor& bias) {
  check(x.dtype() == weight.dtype(),
        "attention: encoder outputs or hidden are {}, the parameters {}; use .to({})", name(x.dtype()),
        name(weight.dtype()), name(weight.dtype()));
  const std::int64_t width = x.size(2);
  Tensor y = empty({rows.steps(), rows.batch(), weight.size(1)}, x.dtype());
  rows.write({y, 0}, [&](const Slot& to) {
    Tensor lines = to.to;
    if (bias.defined()) lines.copy_(bias.detach());
    matmul_into({lines, bias.defined() ? 1.0 : 0.0}, rows.gather(x), weight.detach().narrow(0, first, width));
  });
  constexpr const char* op = "attention_projection";
  return record(
      "attention_projection", y, {x, weight, bias},
      [rows, first, width, x = Saved(x, op), weight = Saved(weight, op)](const Tensor& dy, Grads& d) {
        const Tensor lines = rows.gather(dy);
        if (auto g = d[0]) {
          rows.write(g.slot(),
                     [&](const Slot& to) { matmul_into(to, lines, weight().narrow(0, first, width).t()); });
        }
        if (auto g = d[1]) detail::matmul_into_rows(g.slot(), first, rows.gather(x()).t(), lines);
        if (auto g = d[2]) sum_rows_into(g.slot(), lines);
      });
}

}  // namespace

AdditiveAttention::AdditiveAttention(AdditiveAttentionOptions options, Rng& rng)
    : options_(with_defaults(options)),
      attn_({.in_features = options_.hidden_size + options_.memory_size,
             .out_features = options_.attention_size},
            rng) {
  const double bound = 1 / std::sqrt(static_cast<double>(options_.attention_size));
  v_ = init::uniform_(empty({options_.attention_size}), -bound, bound, rng).set_requires_grad();
}

Tensor AdditiveAttention::stored_weight() const {
  detail::check_not_moved_from("attention", v_.defined());
  return attn_.stored_weight().array;
}

Memory AdditiveAttention::prepare(const Tensor& encoder_outputs, const Tensor& lengths) const {
  detail::check_source("attention", encoder_outputs, lengths, options_.memory_size);
  const SequenceRows rows("attention", encoder_outputs.size(0), encoder_outputs.size(1), lengths);
  return {.values = encoder_outputs,
          .keys = project(rows, encoder_outputs, stored_weight(), options_.hidden_size, attn_.bias()),
          .lengths = lengths};
}

Attended AdditiveAttention::operator()(const Tensor& hidden, const Memory& memory) const {
  check(hidden.dim() == 2 || (hidden.dim() == 3 && hidden.size(0) == 1),
        "attention: hidden of shape {}; pass [batch, {}] or [1, batch, {}]", hidden.shape(),
        options_.hidden_size, options_.hidden_size);
  check(hidden.size(-1) == options_.hidden_size, "attention: hidden {} has width {}, hidden_size is {}",
        hidden.shape(), hidden.size(-1), options_.hidden_size);
  const Tensor one_step = hidden.dim() == 3 ? hidden : hidden.unsqueeze(0);
  const SequenceRows rows("attention", 1, one_step.size(1), Tensor());
  return additive_attention(project(rows, one_step, stored_weight(), 0, Tensor()).squeeze(0), v_, memory);
}

void AdditiveAttention::members(Members& m) { m("v", v_)("attn", attn_); }

}  // namespace rill::nn
