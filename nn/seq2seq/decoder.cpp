#include <rill/nn/seq2seq/decoder.h>

#include <vector>

#include <rill/core/autograd.h>
#include <rill/core/ops.h>
#include <rill/nn/layers/packed_linear.h>
#include <rill/nn/layers/parts.h>

namespace rill::nn {
namespace {

AttentionDecoderOptions with_defaults(AttentionDecoderOptions o) {
  check(o.vocabulary >= 1 && o.embedding_dim >= 1 && o.hidden_size >= 1,
        "AttentionDecoder: vocabulary {}, embedding_dim {} and hidden_size {} must be at least 1",
        o.vocabulary, o.embedding_dim, o.hidden_size);
  check(o.memory_size >= 0 && o.attention_size >= 0 && o.readout_size >= 0,
        "AttentionDecoder: memory_size {}, attention_size {} and readout_size {} must not be negative",
        o.memory_size, o.attention_size, o.readout_size);
  if (o.memory_size == 0) o.memory_size = o.hidden_size;
  if (o.attention_size == 0) o.attention_size = o.hidden_size;
  return o;
}

std::int64_t joined_size(const AttentionDecoderOptions& o) {
  return o.hidden_size + o.memory_size + (o.output_embedding ? o.embedding_dim : 0);
}

std::variant<GRU, RAUCell> make_cell(const AttentionDecoderOptions& o, Rng& rng) {
  const std::int64_t input = o.embedding_dim + o.memory_size;
  if (o.cell == Cell::gru) return GRU({.input_size = input, .hidden_size = o.hidden_size}, rng);
  return RAUCell({.input_size = input, .hidden_size = o.hidden_size}, rng);
}

/// hidden as [B, H]; throws unless it is [B, H] or [1, B, H].
Tensor state_rows(const Tensor& hidden, std::int64_t size) {
  const bool fits =
      (hidden.dim() == 2 || (hidden.dim() == 3 && hidden.size(0) == 1)) && hidden.size(-1) == size;
  check(fits, "decoder: hidden of shape {}; pass [batch, {}] or [1, batch, {}]", hidden.shape(), size, size);
  return hidden.dim() == 2 ? hidden : hidden.select(0, 0);
}

void check_tokens(const char* what, const Tensor& tokens, const Shape& wanted) {
  check(tokens.dtype() == int64 && tokens.shape() == wanted, "decoder: {} are {} {}; they must be int64 {}",
        what, name(tokens.dtype()), tokens.shape(), wanted);
}

/// How many steps of each sequence the loss reads: up to its last target that counts.
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

/// The ids of all rows, in their order.
Tensor ids_of(const SequenceRows& rows, const Tensor& ids) {
  if (!rows.ragged()) return ids.reshape({rows.count()});
  const std::vector<std::int64_t> values = ids.to_vector<std::int64_t>();
  std::vector<std::int64_t> picked;
  for (std::int64_t t = 0; t < rows.steps(); ++t) {
    for (std::int64_t place = 0; place < rows.active(t); ++place) {
      picked.push_back(values[static_cast<std::size_t>(t * rows.batch() + rows.sequence(place))]);
    }
  }
  return tensor(picked, {rows.count()});
}

/// hidden [B, H] in the shape that the caller's had.
Tensor shaped_like(const Tensor& hidden, const Tensor& given) {
  return given.dim() == 3 ? hidden.unsqueeze(0) : hidden;
}

}  // namespace

AttentionDecoder::AttentionDecoder(AttentionDecoderOptions options, Rng& rng)
    : options_(with_defaults(options)),
      embedding_({.num_embeddings = options_.vocabulary,
                  .embedding_dim = options_.embedding_dim,
                  .padding_idx = options_.padding_idx},
                 rng),
      dropout_({.p = options_.dropout}, rng),
      cell_(make_cell(options_, rng)),
      features_dropout_({.p = options_.features_dropout}, rng),
      out_({.in_features = options_.readout_size > 0 ? options_.readout_size : joined_size(options_),
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
        LinearOptions{.in_features = joined_size(options_), .out_features = options_.readout_size}, rng);
  }
}

Memory AttentionDecoder::prepare(const Tensor& encoder_outputs, const Tensor& lengths) const {
  if (attention_) return attention_->prepare(encoder_outputs, lengths);
  detail::check_source("decoder", encoder_outputs, lengths, options_.memory_size);
  check(encoder_outputs.size(0) >= 1, "decoder: encoder outputs {} have no step to take the context from",
        encoder_outputs.shape());
  return {.values = encoder_outputs, .keys = Tensor(), .lengths = lengths};
}

/// The cell's weights as the steps use them.
AttentionDecoder::StepWeights AttentionDecoder::weights() const {
  StepWeights w;
  const Tensor *ih = nullptr, *hh = nullptr;
  if (const GRU* gru = std::get_if<GRU>(&cell_)) {
    const GruWeights& g = gru->weights(0)[0];
    ih = &g.ih;
    hh = &g.hh;
    w.bias = g.bias_ih;
    w.recurrent.bias = g.bias_hh;
  } else {
    const RauWeights& r = std::get<RAUCell>(cell_).weights();
    ih = &r.ih;
    hh = &r.hh;
    w.bias = r.bias;
    w.recurrent.candidate = r.aa;
  }
  const std::int64_t e = options_.embedding_dim;
  w.embedding = detail::part_of(*ih, [&](const Tensor& a) { return a.narrow(0, 0, e).t(); });
  w.recurrent.context =
      detail::part_of(*ih, [&](const Tensor& a) { return a.narrow(0, e, options_.memory_size); });
  w.recurrent.hidden = *hh;
  if (attention_) {
    w.recurrent.query = attention_->query_weight();
    w.recurrent.v = attention_->v();
  }
  return w;
}

DecoderOutputs AttentionDecoder::run(const SequenceRows& rows, const Tensor& ids, const Tensor& hidden,
                                     const Memory& memory) const {
  const Tensor state = state_rows(hidden, options_.hidden_size);
  check(state.size(0) == rows.batch(),
        "decoder: {} rows of tokens, {} of hidden {}; they must be the same batch", rows.batch(),
        state.size(0), hidden.shape());
  detail::check_memory("decoder", memory, rows.batch(), attention_ ? options_.attention_size : 0,
                       state.dtype());
  check(memory.values.size(2) == options_.memory_size,
        "decoder: the memory {} has width {}, the module was made for {}", memory.values.shape(),
        memory.values.size(2), options_.memory_size);
  const StepWeights w = weights();
  check(w.bias.dtype() == state.dtype(), "decoder: the parameters are {}, hidden is {}; use .to({})",
        name(w.bias.dtype()), name(state.dtype()), name(w.bias.dtype()));
  const Tensor embedded = dropout_(embedding_(ids));
  const Tensor read = options_.relu_input ? relu(embedded) : embedded;
  const Tensor gates = rows.steps() == 1 ? detail::packed_linear(read, w.embedding, w.bias)
                                         : linear(read, w.embedding, w.bias);
  const DecoderInputs inputs{gates, options_.output_embedding ? embedded : Tensor(), state};
  return decoder_sequence(options_.cell, rows, inputs, w.recurrent, memory, options_.relu_input);
}

DecoderFeatures AttentionDecoder::features(const Tensor& tokens, const Tensor& hidden,
                                           const Memory& memory) const {
  check(tokens.dim() == 2, "decoder: tokens of shape {}; pass [steps, batch]", tokens.shape());
  check_tokens("tokens", tokens, tokens.shape());
  const std::int64_t steps = tokens.size(0), batch = tokens.size(1);
  const DecoderOutputs out =
      run({"decoder", steps, batch, Tensor()}, tokens.reshape({steps * batch}), hidden, memory);
  return {.joined = out.joined.reshape({steps, batch, out.joined.size(1)}),
          .weights = out.weights.reshape({steps, batch, out.weights.size(1)}),
          .hidden = shaped_like(out.hidden, hidden),
          .hidden_size = options_.hidden_size,
          .memory_size = options_.memory_size};
}

DecoderStep AttentionDecoder::step(const Tensor& tokens, const Tensor& hidden, const Memory& memory) const {
  check(tokens.dim() == 1, "decoder: tokens of shape {}; a step takes [batch]", tokens.shape());
  check_tokens("tokens", tokens, tokens.shape());
  const std::int64_t batch = tokens.size(0);
  const DecoderOutputs out = run({"decoder", 1, batch, Tensor()}, tokens, hidden, memory);
  const Tensor scores = detail::packed_linear(read_out(out.joined), out_.weight(), out_.bias());
  return {.log_probs = log_softmax(scores, -1),
          .hidden = shaped_like(out.hidden, hidden),
          .weights = out.weights.unsqueeze(1)};
}

/// What the output layer reads.
Tensor AttentionDecoder::read_out(const Tensor& joined) const {
  const Tensor read = features_dropout_(joined);
  return readout_ ? features_dropout_(tanh((*readout_)(read))) : read;
}

Tensor AttentionDecoder::log_probs(const DecoderFeatures& features) const {
  return log_softmax(out_(read_out(features.joined)), -1);
}

Tensor AttentionDecoder::log_probs(const Tensor& tokens, const Tensor& hidden, const Memory& memory) const {
  return log_probs(features(tokens, hidden, memory));
}

Tensor AttentionDecoder::loss_of_rows(const Tensor& joined, const Tensor& targets,
                                      const CrossEntropyOptions& options) const {
  return linear_cross_entropy(read_out(joined), out_.weight(), out_.bias(), targets, options);
}

Tensor AttentionDecoder::loss(const DecoderFeatures& features, const Tensor& targets,
                              const CrossEntropyOptions& options) const {
  const std::int64_t steps = features.joined.size(0), batch = features.joined.size(1);
  check_tokens("targets", targets, {steps, batch});
  const Tensor rows = loss_of_rows(features.joined.flatten(0, 1), targets.reshape({steps * batch}), options);
  return options.reduction == Reduction::none ? rows.reshape({steps, batch}) : rows;
}

Tensor AttentionDecoder::loss(const Tensor& tokens, const Tensor& hidden, const Memory& memory,
                              const Tensor& targets, const CrossEntropyOptions& options) const {
  check(tokens.dim() == 2, "decoder: tokens of shape {}; pass [steps, batch]", tokens.shape());
  check_tokens("tokens", tokens, tokens.shape());
  check_tokens("targets", targets, tokens.shape());
  const SequenceRows rows("decoder", tokens.size(0), tokens.size(1), counted_steps(targets, options));
  const DecoderOutputs out = run(rows, ids_of(rows, tokens), hidden, memory);
  const Tensor losses = loss_of_rows(out.joined, ids_of(rows, targets), options);
  return options.reduction == Reduction::none ? losses.reshape(tokens.shape()) : losses;
}

void AttentionDecoder::members(Members& m) const {
  m("embedding", embedding_);
  if (attention_) m("attn", *attention_);
  if (const GRU* gru = std::get_if<GRU>(&cell_)) {
    m("gru", *gru);
  } else {
    m("rau", std::get<RAUCell>(cell_));
  }
  if (readout_) m("readout", *readout_);
  m("out", out_)("dropout", dropout_)("features_dropout", features_dropout_);
}

}  // namespace rill::nn
