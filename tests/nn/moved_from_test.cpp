#include <doctest/doctest.h>

#include <utility>

#include <rill/core/core.h>
#include <rill/nn/nn.h>
#include <support/expect.h>

using namespace rill;
using test::check_error;

namespace {

/// Checks that `call` works on the new module and is an error on the one that was moved from.
template <class M, class Call>
void check_moved_from(M module, const Call& call) {
  const M taken = std::move(module);
  CHECK_NOTHROW(call(taken));
  check_error([&] { call(module); }, "the module was moved from; it has no weights");
}

template <class M, class Options, class Call>
void check_moved_from(const Options& options, const Call& call) {
  Rng rng(1);
  check_moved_from(M(options, rng), call);
}

const Tensor ids = zeros({2, 3}, int64);
const Tensor step = zeros({3, 4});
const Tensor sequence = zeros({2, 3, 4});
const auto on_step = [](const auto& m) { m(step); };
const auto on_sequence = [](const auto& m) { m(sequence); };

}  // namespace

TEST_CASE("moved from: layers") {
  check_moved_from<nn::Linear>(nn::LinearOptions{.in_features = 4, .out_features = 2}, on_step);
  check_moved_from<nn::Linear>(nn::LinearOptions{.in_features = 4, .out_features = 2},
                               [](const auto& m) { m.weight(); });
  check_moved_from<nn::Linear>(nn::LinearOptions{.in_features = 4, .out_features = 2},
                               [](const auto& m) { m.stored_weight(); });
  check_moved_from<nn::LayerNorm>(nn::LayerNormOptions{.normalized_shape = {4}}, on_step);
  check_moved_from<nn::Embedding>(nn::EmbeddingOptions{.num_embeddings = 5, .embedding_dim = 4},
                                  [](const auto& m) { m(ids); });
}

TEST_CASE("moved from: recurrent modules") {
  const nn::RecurrentCellOptions cell{.input_size = 4, .hidden_size = 5};
  check_moved_from<nn::GRUCell>(cell, on_step);
  check_moved_from<nn::LSTMCell>(cell, on_step);
  check_moved_from<nn::RAUCell>(cell, on_step);
  const nn::RecurrentLayersOptions layers{.input_size = 4, .hidden_size = 5, .num_layers = 2};
  check_moved_from<nn::GRU>(layers, on_sequence);
  check_moved_from<nn::LSTM>(layers, on_sequence);
  check_moved_from<nn::RAU>(layers, on_sequence);
  for (const nn::Cell unit : nn::cells) {
    check_moved_from<nn::Recurrent>(nn::RecurrentOptions{.cell = unit, .layers = layers}, on_sequence);
    check_moved_from<nn::Recurrent>(nn::RecurrentOptions{.cell = unit, .layers = layers},
                                    [](const auto& m) { m.weights(0); });
  }
}

TEST_CASE("moved from: attention") {
  const nn::AdditiveAttentionOptions additive{.hidden_size = 4};
  check_moved_from<nn::AdditiveAttention>(additive, [](const auto& m) { m.prepare(sequence); });
  Rng rng(1);
  const nn::Memory memory = nn::AdditiveAttention(additive, rng).prepare(sequence);
  check_moved_from<nn::AdditiveAttention>(additive, [&](const auto& m) { m(step, memory); });
  const nn::BahdanauAttentionOptions bahdanau{.state = 4, .annotation = 4, .align = 3};
  check_moved_from<nn::BahdanauAttention>(bahdanau, [](const auto& m) { m(step, sequence); });
  check_moved_from<nn::BahdanauAttention>(bahdanau, [](const auto& m) { m.keys(sequence); });
  check_moved_from<nn::BahdanauAttention>(bahdanau, [](const auto& m) {
    m.align(step, sequence, zeros({2, 3, 3}), Tensor());
  });
}

TEST_CASE("moved from: decoders") {
  for (const nn::Cell unit : nn::cells) {
    for (const bool attention : {true, false}) {
      const nn::AttentionDecoderOptions options{.vocabulary = 5,
                                                .embedding_dim = 3,
                                                .hidden_size = 4,
                                                .cell = unit,
                                                .attention = attention,
                                                .readout_size = attention ? 2 : 0};
      Rng rng(1);
      const nn::AttentionDecoder whole(options, rng);
      const nn::Memory memory = whole.prepare(sequence);
      const nn::DecoderFeatures features = whole.features(ids, step, memory);
      const auto check_verb = [&](const auto& verb) {
        check_moved_from<nn::AttentionDecoder>(options, verb);
      };
      if (attention) check_verb([&](const auto& m) { m.prepare(sequence); });
      check_verb([&](const auto& m) { m.step(ids.select(0, 0), step, memory); });
      check_verb([&](const auto& m) { m.features(ids, step, memory); });
      check_verb([&](const auto& m) { m.log_probs(features); });
      check_verb([&](const auto& m) { m.log_probs(ids, step, memory); });
      check_verb([&](const auto& m) { m.loss(features, ids); });
      check_verb([&](const auto& m) { m.loss(ids, step, memory, ids); });
    }
  }
  const nn::BahdanauDecoderOptions bahdanau{.vocab = 5, .m = 3, .n = 2, .l = 2, .align = 3};
  check_moved_from<nn::BahdanauDecoder>(bahdanau, [](const auto& m) { m.initial_state(sequence); });
  check_moved_from<nn::BahdanauDecoder>(bahdanau, [](const auto& m) { m(ids, sequence); });
  check_moved_from<nn::BahdanauDecoder>(bahdanau, [](const auto& m) {
    m(ids, sequence, Tensor(), zeros({3, 2}));
  });
}

TEST_CASE("moved from: sequence to sequence") {
  for (const nn::Cell unit : nn::cells) {
    const nn::Seq2SeqOptions options{.source_vocabulary = 5,
                                     .target_vocabulary = 5,
                                     .embedding_dim = 3,
                                     .hidden_size = 4,
                                     .bidirectional = true,
                                     .bridge = nn::Bridge::project,
                                     .cell = unit};
    check_moved_from<nn::Seq2Seq>(options, [](const auto& m) { m.encode(ids); });
    check_moved_from<nn::Seq2Seq>(options, [](const auto& m) { m.loss(ids, Tensor(), ids, ids); });
    check_moved_from<nn::Seq2Seq>(options, [](const auto& m) { m.search(ids); });
  }
}
