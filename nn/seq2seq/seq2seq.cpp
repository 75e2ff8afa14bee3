#include <rill/nn/seq2seq/seq2seq.h>

#include <rill/core/autograd.h>
#include <rill/core/ops.h>

namespace rill::nn {
namespace {

std::int64_t direction_count(const Seq2SeqOptions& o) { return o.bidirectional ? 2 : 1; }

/// Number of features of the encoder's outputs.
std::int64_t memory_size(const Seq2SeqOptions& o) {
  return o.directions == Directions::concat ? direction_count(o) * o.hidden_size : o.hidden_size;
}

Seq2SeqOptions checked(const Seq2SeqOptions& o) {
  check(o.source_vocabulary >= 1 && o.target_vocabulary >= 1 && o.embedding_dim >= 1 && o.hidden_size >= 1 &&
            o.num_layers >= 1,
        "Seq2Seq: source_vocabulary {}, target_vocabulary {}, embedding_dim {}, hidden_size {} and "
        "num_layers {} must be at "
        "least 1",
        o.source_vocabulary, o.target_vocabulary, o.embedding_dim, o.hidden_size, o.num_layers);
  return o;
}

RecurrentOptions encoder_options(const Seq2SeqOptions& o) {
  return {.cell = o.cell,
          .layers = {.input_size = o.embedding_dim,
                     .hidden_size = o.hidden_size,
                     .num_layers = o.num_layers,
                     .dropout = o.num_layers > 1 ? o.layer_dropout : 0,
                     .bidirectional = o.bidirectional}};
}

AttentionDecoderOptions decoder_options(const Seq2SeqOptions& o) {
  return {.vocabulary = o.target_vocabulary,
          .embedding_dim = o.embedding_dim,
          .hidden_size = o.hidden_size,
          .memory_size = memory_size(o),
          .attention_size = o.attention_size,
          .dropout = o.dropout,
          .features_dropout = o.features_dropout,
          .cell = o.cell,
          .attention = o.attention,
          .relu_input = o.relu_input,
          .output_embedding = o.output_embedding,
          .readout_size = o.readout_size,
          .padding_idx = o.padding_idx};
}

/// The last states [D, B, H] of a layer, concatenated or added.
Tensor merged_states(const Tensor& states, Directions how) {
  const Tensor forward = states.select(0, 0);
  if (states.size(0) == 1) return forward;
  const Tensor backward = states.select(0, 1);
  return how == Directions::concat ? cat({forward, backward}, 1) : forward + backward;
}

}  // namespace

Seq2Seq::Seq2Seq(Seq2SeqOptions options, Rng& rng)
    : options_(checked(options)),
      embedding_({.num_embeddings = options.source_vocabulary,
                  .embedding_dim = options.embedding_dim,
                  .padding_idx = options.padding_idx},
                 rng),
      dropout_({.p = options.dropout}, rng),
      encoder_(encoder_options(options), rng),
      decoder_(decoder_options(options), rng) {
  if (options_.bridge == Bridge::project) {
    bridge_.emplace(LinearOptions{.in_features = direction_count(options_) * options_.hidden_size,
                                  .out_features = options_.hidden_size},
                    rng);
  }
}

Encoded Seq2Seq::encode(const Tensor& source, const Tensor& lengths) const {
  check(source.dim() == 2 && source.dtype() == int64,
        "Seq2Seq: the source is {} {}; pass int64 [steps, batch]", name(source.dtype()), source.shape());
  const Tensor embedded = dropout_(embedding_(source));
  const auto [output, all] = encoder_(embedded, {.lengths = lengths});
  const std::int64_t d = direction_count(options_), h = options_.hidden_size;
  const auto of_last_layer = [&](const Tensor& t) { return t.narrow(0, (options_.num_layers - 1) * d, d); };
  const Tensor h_n = of_last_layer(all.h);
  Encoded out{.memory = {},
              .state = bridge_ ? tanh((*bridge_)(merged_states(h_n, Directions::concat)))
                               : merged_states(h_n, Directions::sum)};
  if (all.c.defined()) out.state.c = merged_states(of_last_layer(all.c), Directions::sum);
  if (!options_.attention) {
    out.memory = decoder_.prepare(merged_states(h_n, options_.directions).unsqueeze(0));
    return out;
  }
  const bool add = d == 2 && options_.directions == Directions::sum;
  out.memory = decoder_.prepare(add ? output.narrow(2, 0, h) + output.narrow(2, h, h) : output, lengths);
  return out;
}

Tensor Seq2Seq::loss(const Tensor& source, const Tensor& lengths, const Tensor& target_in,
                     const Tensor& target_out, const CrossEntropyOptions& options) const {
  check(target_in.dim() == 2 && source.dim() == 2 && target_in.size(1) == source.size(1),
        "Seq2Seq: source {} and target {} do not fit; they are [steps, batch] of the same batch",
        source.shape(), target_in.shape());
  const Encoded from = encode(source, lengths);
  return decoder_.loss(target_in, from.state, from.memory, target_out, options);
}

std::vector<std::vector<Hypothesis>> Seq2Seq::search(const Tensor& source, const Tensor& lengths,
                                                     const BeamSearchOptions& options) const {
  const NoGrad no_grad;
  check(options.start >= 0 && options.start < options_.target_vocabulary,
        "beam_search: token {} is outside 0..{}", options.start, options_.target_vocabulary - 1);
  const Encoded from = encode(source, lengths);
  const auto step = [&](const Tensor& tokens, const AttendingState<RecurrentState>& state) {
    DecoderStep next = decoder_.step(tokens, state.state(), state.memory());
    return BeamStep{next.log_probs, state.with(next.state), next.weights.squeeze(1)};
  };
  const Tensor steps = full({source.size(1)}, static_cast<double>(source.size(0)), int64);
  return beam_search(step, AttendingState(from.state, from.memory), options,
                     lengths.defined() ? lengths : steps);
}

void Seq2Seq::members(Members& m) {
  m("embedding", embedding_)("encoder", encoder_);
  if (bridge_) m("bridge", *bridge_);
  m("decoder", decoder_)("dropout", dropout_);
}

}  // namespace rill::nn
