#include <rill/nn/seq2seq/decoder.h>

#include <vector>

#include <rill/core/autograd.h>
#include <rill/core/ops.h>
#include <rill/nn/layers/packed_linear.h>
#include <rill/nn/seq2seq/decoder_sequence.h>

namespace rill::nn {
namespace {

AttentionDecoderOptions with_defaults(AttentionDecoderOptions o) {
  using detail::is_size;
  check(is_size(o.vocabulary) && is_size(o.embedding_dim) && is_size(o.hidden_size),
        "AttentionDecoder: vocabulary {}, embedding_dim {} and hidden_size {} must be in 1..{}", o.vocabulary,
        o.embedding_dim, o.hidden_size, detail::largest_size);
  if (o.memory_size == 0) o.memory_size = o.hidden_size;
  if (o.attention_size == 0) o.attention_size = o.hidden_size;
  check(
      is_size(o.memory_size) && is_size(o.attention_size) && (o.readout_size == 0 || is_size(o.readout_size)),
      "AttentionDecoder: memory_size {}, attention_size {} and readout_size {} must be in 0..{}",
      o.memory_size, o.attention_size, o.readout_size, detail::largest_size);
  return o;
}

std::int64_t feature_size(const AttentionDecoderOptions& o) {
  return o.hidden_size + o.memory_size + (o.output_embedding ? o.embedding_dim : 0);
}

void check_tokens(const char* what, const Tensor& tokens, const Shape& wanted) {
  check(tokens.dtype() == int64 && tokens.shape() == wanted, "decoder: {} are {} {}; they must be int64 {}",
        what, name(tokens.dtype()), tokens.shape(), wanted);
}

/// The number of steps of each sequence that the loss depends on: up to its last target that is not ignored.
Tensor counted_steps(const Tensor& targets, const CrossEntropyOptions& options) {
  if (!options.ignore_index || options.reduction == Reduction::none) return {};
  const std::int64_t steps = targets.size(0), batch = targets.size(1);
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(batch), 0);
  const std::vector<std::int64_t> values = targets.to_vector<std::int64_t>();
  for (std::int64_t i = 0; i < steps * batch; ++i) {
    if (values[static_cast<std::size_t>(i)] == *options.ignore_index) continue;
    lengths[static_cast<std::size_t>(i % batch)] = i / batch + 1;
  }
  return tensor(lengths, {batch});
}

/// The rows of [T · B] that are valid, in the order of SequenceRows.
std::vector<std::int64_t> valid_indices(const SequenceRows& rows) {
  std::vector<std::int64_t> picked;
  for (std::int64_t t = 0; t < rows.steps(); ++t) {
    for (std::int64_t p = 0; p < rows.active(t); ++p)
      picked.push_back(t * rows.batch() + rows.batch_index(p));
  }
  return picked;
}

/// The valid ids of [T, B], in the order of SequenceRows, [N].
Tensor valid_ids(const SequenceRows& rows, const Tensor& ids) {
  if (!rows.ragged()) return ids.reshape({rows.count()});
  const std::vector<std::int64_t> values = ids.to_vector<std::int64_t>();
  std::vector<std::int64_t> picked = valid_indices(rows);
  for (std::int64_t& i : picked) i = values[static_cast<std::size_t>(i)];
  return tensor(picked, {rows.count()});
}

/// [B, H] or undefined → the shape of the caller's state.
RecurrentState shaped_like(const RecurrentState& state, const RecurrentState& given) {
  const auto shaped = [&](const Tensor& t) { return t.defined() && given.h.dim() == 3 ? t.unsqueeze(0) : t; };
  return {shaped(state.h), shaped(state.c)};
}

}  // namespace

AttentionDecoder::AttentionDecoder(AttentionDecoderOptions options, Rng& rng)
    : options_(with_defaults(options)),
      embedding_({.num_embeddings = options_.vocabulary,
                  .embedding_dim = options_.embedding_dim,
                  .padding_idx = options_.padding_idx},
                 rng),
      dropout_({.p = options_.dropout}, rng),
      unit_({.cell = options_.cell,
             .layers = {.input_size = options_.embedding_dim + options_.memory_size,
                        .hidden_size = options_.hidden_size}},
            rng),
      features_dropout_({.p = options_.features_dropout}, rng),
      out_({.in_features = options_.readout_size > 0 ? options_.readout_size : feature_size(options_),
            .out_features = options_.vocabulary},
           rng) {
  if (options_.attention) {
    attention_.emplace(AdditiveAttentionOptions{.hidden_size = options_.hidden_size,
                                                .memory_size = options_.memory_size,
                                                .attention_size = options_.attention_size},
                       rng);
  }
  if (options_.readout_size > 0) {
    readout_.emplace(
        LinearOptions{.in_features = feature_size(options_), .out_features = options_.readout_size}, rng);
  }
}

Memory AttentionDecoder::prepare(const Tensor& encoder_outputs, const Tensor& lengths) const {
  if (attention_) return attention_->prepare(encoder_outputs, lengths);
  detail::check_source("decoder", encoder_outputs, lengths, options_.memory_size);
  check(encoder_outputs.size(0) >= 1, "decoder: encoder outputs {} have no step to take the context from",
        encoder_outputs.shape());
  return {.values = encoder_outputs, .keys = Tensor(), .lengths = lengths};
}

/// The state as [B, H]; throws unless it is [B, H] or [1, B, H].
RecurrentState AttentionDecoder::unit_state(const RecurrentState& state) const {
  const std::int64_t size = options_.hidden_size;
  const auto rows = [&](const char* part, const Tensor& t) {
    const bool fits = (t.dim() == 2 || (t.dim() == 3 && t.size(0) == 1)) && t.size(-1) == size;
    check(fits, "decoder: {} of shape {}; pass [batch, {}] or [1, batch, {}]", part, t.shape(), size, size);
    return t.dim() == 2 ? t : t.select(0, 0);
  };
  check(state.h.defined(), "decoder: the state is missing; pass the encoder's last one or zeros");
  return {rows("hidden", state.h), state.c.defined() ? rows("the cell state", state.c) : Tensor()};
}

DecoderOutputs AttentionDecoder::run_attending(const Tensor& tokens, const Tensor& lengths,
                                               const RecurrentState& state, const Memory& memory) const {
  const SequenceRows rows("decoder", tokens.size(0), tokens.size(1), lengths);
  const Tensor embedded = dropout_(embedding_(valid_ids(rows, tokens)));
  const DecoderWeights weights{
      .attention = attention_->stored_weight(), .v = attention_->v(), .unit = unit_.weights(0)[0]};
  return decoder_sequence(options_.cell, rows, {embedded, state}, weights, memory,
                          {.relu_input = options_.relu_input, .output_embedding = options_.output_embedding});
}

/// The context is constant, so the recurrence is that of a plain layer.
DecoderOutputs AttentionDecoder::run_without_attention(const Tensor& tokens, const Tensor& lengths,
                                                       const RecurrentState& state,
                                                       const Memory& memory) const {
  const std::int64_t steps = tokens.size(0), batch = tokens.size(1);
  const SequenceRows rows("decoder", steps, batch, lengths);
  const Tensor embedded = dropout_(embedding_(tokens));
  const Tensor context = memory.values.narrow(0, 0, 1).expand({steps, batch, options_.memory_size});
  const Tensor x = cat({embedded, context}, 2);
  const auto one_layer = [](const Tensor& t) { return t.defined() ? t.unsqueeze(0) : t; };
  const auto [output, last] = unit_(options_.relu_input ? relu(x) : x,
                                    {.state = {one_layer(state.h), one_layer(state.c)}, .lengths = lengths});
  std::vector<Tensor> features{output, context};
  if (options_.output_embedding) features.push_back(embedded);
  Tensor weights = zeros({rows.count(), memory.steps()}, output.dtype());
  weights.narrow(1, 0, 1).fill_(1);
  const Tensor all = cat(features, 2).flatten(0, 1);
  return {.features = rows.ragged() ? index_select(all, 0, tensor(valid_indices(rows), {rows.count()})) : all,
          .weights = weights,
          .state = {last.h.squeeze(0), last.c.defined() ? last.c.squeeze(0) : Tensor()}};
}

/// All steps of tokens [T, B], or of each sequence the first `lengths`.
DecoderOutputs AttentionDecoder::run(const Tensor& tokens, const Tensor& lengths, const RecurrentState& given,
                                     const Memory& memory) const {
  const RecurrentState state = unit_state(given);
  const std::int64_t batch = tokens.size(1);
  check(state.batch() == batch, "decoder: {} rows of tokens, {} of hidden {}; they must be the same batch",
        batch, state.batch(), given.h.shape());
  const DType dtype = state.h.dtype(), wanted = unit_.weights(0)[0].ih.dtype();
  detail::check_memory("decoder", memory, batch, attention_ ? options_.attention_size : 0, dtype);
  check(memory.values.size(2) == options_.memory_size,
        "decoder: the memory {} has width {}, the module was made for {}", memory.values.shape(),
        memory.values.size(2), options_.memory_size);
  check(dtype == wanted, "decoder: the parameters are {}, hidden is {}; use .to({})", name(wanted),
        name(dtype), name(wanted));
  return attention_ ? run_attending(tokens, lengths, state, memory)
                    : run_without_attention(tokens, lengths, state, memory);
}

DecoderFeatures AttentionDecoder::features(const Tensor& tokens, const RecurrentState& state,
                                           const Memory& memory) const {
  check(tokens.dim() == 2, "decoder: tokens of shape {}; pass [steps, batch]", tokens.shape());
  check_tokens("tokens", tokens, tokens.shape());
  const std::int64_t steps = tokens.size(0), batch = tokens.size(1);
  const DecoderOutputs out = run(tokens, Tensor(), state, memory);
  return {.concat = out.features.reshape({steps, batch, out.features.size(1)}),
          .weights = out.weights.reshape({steps, batch, out.weights.size(1)}),
          .state = shaped_like(out.state, state),
          .hidden_size = options_.hidden_size,
          .memory_size = options_.memory_size};
}

DecoderStep AttentionDecoder::step(const Tensor& tokens, const RecurrentState& state,
                                   const Memory& memory) const {
  check(tokens.dim() == 1, "decoder: tokens of shape {}; a step takes [batch]", tokens.shape());
  check_tokens("tokens", tokens, tokens.shape());
  const DecoderOutputs out = run(tokens.unsqueeze(0), Tensor(), state, memory);
  const Tensor scores = detail::packed_linear(read_out(out.features), out_.stored_weight(), out_.bias());
  return {.log_probs = log_softmax(scores, -1),
          .state = shaped_like(out.state, state),
          .weights = out.weights.unsqueeze(1)};
}

/// The input of the output layer.
Tensor AttentionDecoder::read_out(const Tensor& features) const {
  const Tensor read = features_dropout_(features);
  return readout_ ? features_dropout_(tanh((*readout_)(read))) : read;
}

Tensor AttentionDecoder::log_probs(const DecoderFeatures& features) const {
  return log_softmax(out_(read_out(features.concat)), -1);
}

Tensor AttentionDecoder::log_probs(const Tensor& tokens, const RecurrentState& state,
                                   const Memory& memory) const {
  return log_probs(features(tokens, state, memory));
}

Tensor AttentionDecoder::loss_of_rows(const Tensor& features, const Tensor& targets,
                                      const CrossEntropyOptions& options) const {
  return linear_cross_entropy(read_out(features), out_.stored_weight(), out_.bias(), targets, options);
}

Tensor AttentionDecoder::loss(const DecoderFeatures& features, const Tensor& targets,
                              const CrossEntropyOptions& options) const {
  const std::int64_t steps = features.concat.size(0), batch = features.concat.size(1);
  check_tokens("targets", targets, {steps, batch});
  const Tensor rows = loss_of_rows(features.concat.flatten(0, 1), targets.reshape({steps * batch}), options);
  return options.reduction == Reduction::none ? rows.reshape({steps, batch}) : rows;
}

Tensor AttentionDecoder::loss(const Tensor& tokens, const RecurrentState& state, const Memory& memory,
                              const Tensor& targets, const CrossEntropyOptions& options) const {
  check(tokens.dim() == 2, "decoder: tokens of shape {}; pass [steps, batch]", tokens.shape());
  check_tokens("tokens", tokens, tokens.shape());
  check_tokens("targets", targets, tokens.shape());
  const Tensor lengths = counted_steps(targets, options);
  const DecoderOutputs out = run(tokens, lengths, state, memory);
  const SequenceRows rows("decoder", tokens.size(0), tokens.size(1), lengths);
  const Tensor losses = loss_of_rows(out.features, valid_ids(rows, targets), options);
  return options.reduction == Reduction::none ? losses.reshape(tokens.shape()) : losses;
}

void AttentionDecoder::members(Members& m) {
  m("embedding", embedding_);
  if (attention_) m("attn", *attention_);
  m(name(options_.cell), unit_);
  if (readout_) m("readout", *readout_);
  m("out", out_)("dropout", dropout_)("features_dropout", features_dropout_);
}

}  // namespace rill::nn
