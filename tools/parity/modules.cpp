#include <functional>
#include <map>
#include <optional>

#include <parity/models.h>
#include <parity/replay.h>
#include <rill/core/ops.h>
#include <rill/nn/attention/attention.h>
#include <rill/nn/layers/embedding.h>
#include <rill/nn/layers/layer_norm.h>
#include <rill/nn/layers/linear.h>
#include <rill/nn/recurrent/recurrent.h>
#include <rill/nn/seq2seq/bahdanau.h>
#include <rill/nn/seq2seq/decoder.h>

namespace rill::parity {
namespace {

using Run = std::function<Results(Replay&)>;

/// The index of the token that is no word and counts nowhere.
constexpr std::int64_t pad = 0;

/// Checks that every argument was used, and finishes.
Results finish(Replay& r, const NamedTensors& outputs) {
  r.call().check_all_used();
  return r.finish(outputs);
}

Results run_linear(Replay& r) {
  Call& c = r.call();
  Rng rng(0);
  nn::Linear linear({.in_features = c.integer("in_features"),
                     .out_features = c.integer("out_features"),
                     .bias = c.flag("bias", true)},
                    rng);
  r.load(linear);
  return finish(r, single(linear(c.tensor("x"))));
}

Results run_embedding(Replay& r) {
  Call& c = r.call();
  Rng rng(0);
  nn::Embedding embedding(
      {.num_embeddings = c.integer("num_embeddings"),
       .embedding_dim = c.integer("embedding_dim"),
       .padding_idx = c.has("padding_idx") ? std::optional(c.integer("padding_idx")) : std::nullopt},
      rng);
  r.load(embedding);
  return finish(r, single(embedding(c.tensor("index"))));
}

Results run_layer_norm(Replay& r) {
  Call& c = r.call();
  Rng rng(0);
  nn::LayerNorm norm({.normalized_shape = c.dims("normalized_shape"),
                      .eps = c.number("eps", 1e-5),
                      .elementwise_affine = c.flag("elementwise_affine", true)},
                     rng);
  r.load(norm);
  return finish(r, single(norm(c.tensor("x"))));
}

template <class Cell>
Results run_cell(Replay& r) {
  Call& c = r.call();
  Rng rng(0);
  Cell cell({.input_size = c.integer("input_size"),
             .hidden_size = c.integer("hidden_size"),
             .bias = c.flag("bias", true)},
            rng);
  r.load(cell);
  return finish(r, {{"h", cell(c.tensor("x"), c.tensor_or_none("h_prev"))}});
}

Results run_lstm_cell(Replay& r) {
  Call& c = r.call();
  Rng rng(0);
  nn::LSTMCell cell({.input_size = c.integer("input_size"),
                     .hidden_size = c.integer("hidden_size"),
                     .bias = c.flag("bias", true)},
                    rng);
  r.load(cell);
  const auto [h, cell_state] = cell(c.tensor("x"), {c.tensor_or_none("h_prev"), c.tensor_or_none("c_prev")});
  return finish(r, {{"h", h}, {"c", cell_state}});
}

nn::RecurrentLayersOptions layers_options(Call& c) {
  return {.input_size = c.integer("input_size"),
          .hidden_size = c.integer("hidden_size"),
          .num_layers = c.integer("num_layers", 1),
          .bias = c.flag("bias", true),
          .batch_first = c.flag("batch_first", false),
          .dropout = c.number("dropout", 0),
          .bidirectional = c.flag("bidirectional", false)};
}

Results run_layers(Replay& r, nn::Cell cell) {
  Call& c = r.call();
  Rng rng(0);
  nn::Recurrent layers({.cell = cell, .layers = layers_options(c)}, rng);
  layers.eval();
  r.load(layers);
  if (c.has("packed") && c.flag("packed")) check(c.has("lengths"), "packed, but there are no lengths");
  const auto [output, last] = layers(
      c.tensor("input"),
      {.state = {c.tensor_or_none("h_0"), c.tensor_or_none("c_0")}, .lengths = c.tensor_or_none("lengths")});
  NamedTensors outputs{{"output", output}, {"h_n", last.h}};
  if (last.c.defined()) outputs.emplace_back("c_n", last.c);
  return finish(r, outputs);
}

/// Layers, batch first, and a linear map of the last valid state.
Results run_model(Replay& r, nn::Cell cell) {
  Call& c = r.call();
  Rng rng(0);
  nn::RecurrentOptions options{.cell = cell, .layers = layers_options(c)};
  options.layers.batch_first = c.flag("batch_first", true);
  LastStep model(name(cell), options, c.integer("output_size"), rng);
  model.eval();
  r.load(model);
  return finish(r, single(model(c.tensor("input"), c.tensor_or_none("lengths"))));
}

Results run_attention(Replay& r) {
  Call& c = r.call();
  Rng rng(0);
  nn::AdditiveAttention attention({.hidden_size = c.integer("hidden_size")}, rng);
  r.load(attention);
  const nn::Memory memory = attention.prepare(c.tensor("encoder_outputs"), c.tensor_or_none("lengths"));
  return finish(r, {{"weights", attention(c.tensor("hidden"), memory).weights}});
}

/// One step when a token is given, else all steps under teacher forcing with the summed loss.
Results run_decoder(Replay& r) {
  Call& c = r.call();
  Rng rng(0);
  nn::AttentionDecoder decoder({.vocabulary = c.integer("output_size"),
                                .embedding_dim = c.integer("hidden_size"),
                                .hidden_size = c.integer("hidden_size"),
                                .dropout = c.number("dropout_p", 0),
                                .cell = cell_of(c, "rnn")},
                               rng);
  decoder.eval();
  r.load(decoder);
  const Tensor hidden = c.tensor("hidden");
  const nn::Memory memory = decoder.prepare(c.tensor("encoder_outputs"), c.tensor_or_none("lengths"));
  if (c.has("token")) {
    const nn::DecoderStep step = decoder.step(c.tensor("token"), hidden, memory);
    return finish(r, {{"log_probs", step.log_probs}, {"hidden", step.state.h}, {"weights", step.weights}});
  }
  const nn::DecoderFeatures features = decoder.features(c.tensor("dec_in"), hidden, memory);
  const Tensor loss =
      decoder.loss(features, c.tensor("target"), {.ignore_index = pad, .reduction = Reduction::sum});
  return finish(r, {{"loss", loss},
                    {"log_probs", decoder.log_probs(features)},
                    {"weights", features.weights},
                    {"hidden", features.state.h}});
}

Results run_bahdanau_attention(Replay& r) {
  Call& c = r.call();
  Rng rng(0);
  nn::BahdanauAttention attention(
      {.state = c.integer("state"), .annotation = c.integer("annotation"), .align = c.integer("align")}, rng);
  r.load(attention);
  const auto [weights, context] = attention(c.tensor("s"), c.tensor("h"), c.tensor_or_none("lengths"));
  return finish(r, {{"weights", weights}, {"context", context}});
}

Results run_bahdanau_decoder(Replay& r) {
  Call& c = r.call();
  Rng rng(0);
  nn::BahdanauDecoder decoder({.vocab = c.integer("vocab"),
                               .m = c.integer("m"),
                               .n = c.integer("n"),
                               .l = c.integer("l"),
                               .align = c.integer("align")},
                              rng);
  r.load(decoder);
  const auto [log_probs, weights, s] =
      decoder(c.tensor("dec_in"), c.tensor("h"), c.tensor_or_none("lengths"));
  const Tensor target = c.tensor("target");
  const Tensor rows = log_probs.reshape({target.numel(), log_probs.size(-1)});
  const Tensor loss =
      nll_loss(rows, target.reshape({target.numel()}), {.ignore_index = pad, .reduction = Reduction::sum});
  return finish(r, {{"loss", loss}, {"log_probs", log_probs}, {"weights", weights}, {"s", s}});
}

}  // namespace

Results replay_module(Replay& r) {
  static const std::map<std::string_view, Run> table{{"Linear", run_linear},
                                                     {"Embedding", run_embedding},
                                                     {"LayerNorm", run_layer_norm},
                                                     {"GRUCell", run_cell<nn::GRUCell>},
                                                     {"LSTMCell", run_lstm_cell},
                                                     {"RAUCell", run_cell<nn::RAUCell>},
                                                     {"Attention", run_attention},
                                                     {"AttnDecoderRNN", run_decoder},
                                                     {"BahdanauAttention", run_bahdanau_attention},
                                                     {"BahdanauDecoder", run_bahdanau_decoder}};
  const std::string& op = r.given().op;
  if (const auto cell = nn::cell_named(op)) return run_layers(r, *cell);
  if (op.ends_with("Model")) {
    if (const auto cell = nn::cell_named(op.substr(0, op.size() - 5))) return run_model(r, *cell);
  }
  const auto found = table.find(op);
  if (found == table.end()) throw Unsupported(fmt::format("rill has no module '{}'", op));
  return found->second(r);
}

}  // namespace rill::parity
