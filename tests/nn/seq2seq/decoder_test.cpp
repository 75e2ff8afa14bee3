#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include <rill/core/core.h>
#include <rill/core/gemm/packed_matrix.h>
#include <rill/nn/seq2seq/decoder.h>
#include <support/expect.h>

namespace {

using namespace rill;
using nn::Cell;
using test::largest_difference;

nn::AttentionDecoder small_decoder(nn::AttentionDecoderOptions o = {}) {
  Rng rng(5);
  o.vocabulary = 9;
  o.embedding_dim = 4;
  o.hidden_size = 5;
  o.memory_size = 6;
  o.attention_size = 3;
  return nn::AttentionDecoder(o, rng);
}

Tensor random_tokens(const Shape& shape, std::uint64_t seed, std::uint64_t vocabulary = 9) {
  Rng rng(seed);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < numel(shape); ++i)
    ids.push_back(static_cast<std::int64_t>(rng.below(vocabulary)));
  return tensor(ids, shape);
}

}  // namespace

TEST_CASE("decoder: the loss of features equals the loss of tokens") {
  for (const auto& [cell, attention] : {std::pair{Cell::gru, true}, std::pair{Cell::lstm, true},
                                        std::pair{Cell::rau, true}, std::pair{Cell::lstm, false}}) {
    nn::AttentionDecoder decoder =
        small_decoder({.dropout = 0, .cell = cell, .attention = attention, .output_embedding = true});
    decoder.to(float64);
    Rng rng(2);
    const Tensor outputs = randn({7, 3, 6}, rng, float64), hidden = randn({3, 5}, rng, float64);
    const Tensor tokens = random_tokens({4, 3}, 3);
    const Tensor targets = tensor<std::int64_t>({3, 4, 0, 5, 0, 0, 0, 7, 0, 0, 2, 0}, {4, 3});
    const CrossEntropyOptions options{.ignore_index = 0, .label_smoothing = 0.1};
    std::vector<std::vector<double>> gradients[2];
    double losses[2];
    for (int i : {0, 1}) {
      decoder.zero_grad();
      const nn::Memory memory = decoder.prepare(outputs, tensor<std::int64_t>({7, 2, 5}));
      const Tensor loss = i == 0 ? decoder.loss(tokens, hidden, memory, targets, options)
                                 : decoder.loss(decoder.features(tokens, hidden, memory), targets, options);
      loss.backward();
      losses[i] = loss.item();
      for (const auto& [name, p] : decoder.named_parameters()) gradients[i].push_back(p.grad().to_vector());
    }
    CHECK(losses[0] == doctest::Approx(losses[1]).epsilon(1e-12));
    REQUIRE(gradients[0].size() == gradients[1].size());
    for (std::size_t k = 0; k < gradients[0].size(); ++k) {
      for (std::size_t j = 0; j < gradients[0][k].size(); ++j) {
        CHECK(gradients[0][k][j] == doctest::Approx(gradients[1][k][j]).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("decoder: single steps equal teacher forcing") {
  for (const bool attention : {true, false}) {
    for (const std::int64_t readout : {0, 8}) {
      nn::AttentionDecoder decoder = small_decoder(
          {.attention = attention, .relu_input = false, .output_embedding = true, .readout_size = readout});
      decoder.eval();
      Rng rng(2);
      const Tensor outputs = randn({7, 3, 6}, rng), tokens = random_tokens({4, 3}, 3);
      Tensor hidden = randn({1, 3, 5}, rng);
      const nn::Memory memory = decoder.prepare(outputs, tensor<std::int64_t>({7, 2, 5}));
      const nn::DecoderFeatures features = decoder.features(tokens, hidden, memory);
      const Tensor all = decoder.log_probs(features);
      for (const bool recorded : {true, false}) {
        nn::RecurrentState h = hidden;
        for (std::int64_t t = 0; t < 4; ++t) {
          const std::optional<NoGrad> off = recorded ? std::nullopt : std::optional<NoGrad>(std::in_place);
          const nn::DecoderStep next = decoder.step(tokens.select(0, t), h, memory);
          CHECK(largest_difference(next.log_probs, all.select(0, t)) < 1e-5);
          CHECK(largest_difference(next.weights.squeeze(1), features.weights.select(0, t)) < 1e-6);
          h = next.state;
        }
        CHECK(largest_difference(h.h, features.state.h) < 1e-6);
      }
    }
  }
}

TEST_CASE("decoder: without attention the context is constant") {
  nn::AttentionDecoder decoder = small_decoder({.attention = false});
  decoder.eval();
  Rng rng(2);
  const Tensor outputs = randn({7, 3, 6}, rng);
  const nn::DecoderFeatures f =
      decoder.features(random_tokens({4, 3}, 3), randn({3, 5}, rng), decoder.prepare(outputs));
  for (std::int64_t t = 0; t < 4; ++t) {
    CHECK(largest_difference(f.contexts().select(0, t), outputs.select(0, 0)) == 0);
    CHECK(f.weights.select(0, t).select(1, 0).to_vector() == std::vector<double>(3, 1.0));
  }
  for (const auto& [name, p] : decoder.named_parameters()) CHECK_MESSAGE(!name.starts_with("attn"), name);
}

TEST_CASE("decoder: without attention the states equal those of the unit on embedding and context") {
  for (const Cell cell : nn::cells) {
    nn::AttentionDecoder decoder = small_decoder({.dropout = 0, .cell = cell, .attention = false});
    Rng rng(2);
    const Tensor outputs = randn({7, 3, 6}, rng), h = randn({1, 3, 5}, rng),
                 tokens = random_tokens({4, 3}, 3);
    nn::Recurrent unit({.cell = cell, .layers = {.input_size = 4 + 6, .hidden_size = 5}}, rng);
    const std::string prefix = std::string(name(cell)) + '.';
    {
      const NoGrad no_grad;
      for (auto& [name, p] : unit.named_parameters()) Tensor(p).copy_(decoder.parameter(prefix + name));
    }
    const Tensor x = cat(
        {embedding(decoder.parameter("embedding.weight"), tokens), outputs.narrow(0, 0, 1).expand({4, 3, 6})},
        2);
    const auto [states, last] =
        nn::reference::recurrent_sequence(cell, relu(x), unit.weights(0), {.state = h});
    const nn::DecoderFeatures features = decoder.features(tokens, h, decoder.prepare(outputs));
    CHECK(largest_difference(features.states(), states) < 1e-6);
    CHECK(largest_difference(features.state.h, last.h) < 1e-6);
  }
}

TEST_CASE(
    "decoder: a row has the same bits alone and in a small batch, and equals a large batch up to rounding") {
  nn::AttentionDecoder decoder = small_decoder();
  decoder.eval();
  const NoGrad no_grad;
  Rng rng(2);
  for (const std::int64_t batch : {9, 20}) {
    const Tensor outputs = randn({7, batch, 6}, rng), hidden = randn({batch, 5}, rng),
                 tokens = random_tokens({batch}, 3);
    const nn::Memory memory = decoder.prepare(outputs);
    const nn::DecoderStep all = decoder.step(tokens, hidden, memory);
    const Tensor row = tensor<std::int64_t>({6});
    const nn::DecoderStep one =
        decoder.step(tokens.narrow(0, 6, 1), hidden.narrow(0, 6, 1), memory.rows(row));
    const double most = row_granularity(batch) == 1 ? 0 : 1e-6;
    CHECK(largest_difference(one.log_probs, all.log_probs.narrow(0, 6, 1)) <= most);
    CHECK(largest_difference(one.state.h, all.state.h.narrow(0, 6, 1)) <= most);
  }
}

TEST_CASE("decoder: a kept graph gives the same gradients in every pass") {
  for (const Cell cell : nn::cells) {
    const nn::AttentionDecoder decoder = small_decoder({.dropout = 0, .cell = cell});
    Rng rng(2);
    const Tensor outputs = randn({7, 3, 6}, rng), hidden = randn({3, 5}, rng);
    const nn::DecoderFeatures f =
        decoder.features(random_tokens({4, 3}, 3), hidden, decoder.prepare(outputs));
    const Tensor loss = sum(f.concat * f.concat);
    std::vector<Tensor> first;
    for (const bool keep : {true, true, false}) {
      for (Tensor p : decoder.parameters()) p.zero_grad();
      backward(loss, {.retain_graph = keep});
      std::size_t i = 0;
      for (const auto& [name, p] : decoder.named_parameters()) {
        if (!p.grad().defined()) continue;
        if (keep && first.size() <= i) first.push_back(p.grad().clone());
        CHECK_MESSAGE(largest_difference(p.grad(), first[i]) == 0, name);
        ++i;
      }
    }
  }
}

TEST_CASE("decoder: dropout acts in training and is off in eval") {
  nn::AttentionDecoder decoder = small_decoder({.dropout = 0.5, .features_dropout = 0.5});
  Rng rng(2);
  const Tensor outputs = randn({7, 3, 6}, rng), hidden = randn({3, 5}, rng),
               tokens = random_tokens({4, 3}, 3);
  const nn::Memory memory = decoder.prepare(outputs);
  CHECK(largest_difference(decoder.log_probs(tokens, hidden, memory),
                           decoder.log_probs(tokens, hidden, memory)) > 1e-3);
  decoder.eval();
  CHECK(largest_difference(decoder.log_probs(tokens, hidden, memory),
                           decoder.log_probs(tokens, hidden, memory)) == 0);
}

TEST_CASE("decoder: parameter names") {
  const auto names = [](const nn::Module& m) {
    std::string all;
    for (const auto& [name, p] : m.named_parameters()) all += name + " ";
    return all;
  };
  CHECK(names(small_decoder()) ==
        "embedding.weight attn.v attn.attn.weight attn.attn.bias gru.weight_ih_l0 gru.weight_hh_l0 "
        "gru.bias_ih_l0 "
        "gru.bias_hh_l0 out.weight out.bias ");
  CHECK(
      names(small_decoder({.cell = Cell::rau, .attention = false, .readout_size = 3})) ==
      "embedding.weight rau.cells.0.weight_xr rau.cells.0.weight_hr rau.cells.0.weight_xz "
      "rau.cells.0.weight_hz rau.cells.0.weight_xh rau.cells.0.weight_hh rau.cells.0.weight_xa "
      "rau.cells.0.weight_ha rau.cells.0.weight_aa rau.cells.0.bias_r rau.cells.0.bias_z rau.cells.0.bias_h "
      "rau.cells.0.bias_a readout.weight readout.bias out.weight out.bias ");
}

TEST_CASE("decoder: using a moved-from decoder is an error") {
  for (const bool attention : {true, false}) {
    nn::AttentionDecoder decoder = small_decoder({.attention = attention});
    const nn::Memory memory = decoder.prepare(zeros({7, 3, 6}));
    const nn::AttentionDecoder taken = std::move(decoder);
    const Tensor tokens = zeros({3}, int64), h = zeros({3, 5});
    CHECK_NOTHROW(taken.step(tokens, h, memory));
    CHECK_THROWS_WITH_AS(decoder.step(tokens, h, memory), "gru: the module was moved from; it has no weights",
                         Error);
    if (attention) CHECK_THROWS_AS(decoder.prepare(zeros({7, 3, 6})), Error);
  }
}

TEST_CASE("decoder: zero steps or rows give empty results and pass gradients on") {
  nn::AttentionDecoder decoder = small_decoder();
  Rng rng(2);
  Tensor hidden = randn({1, 3, 5}, rng).set_requires_grad();
  const nn::DecoderFeatures none =
      decoder.features(zeros({0, 3}, int64), hidden, decoder.prepare(randn({7, 3, 6}, rng)));
  CHECK(none.concat.shape() == Shape{0, 3, 11});
  CHECK(none.weights.shape() == Shape{0, 3, 7});
  CHECK(largest_difference(none.state.h, hidden) == 0);
  sum(none.state.h).backward();
  CHECK(hidden.grad().to_vector() == std::vector<double>(15, 1.0));
  const nn::Memory nobody = decoder.prepare(zeros({7, 0, 6}));
  CHECK(decoder.log_probs(zeros({4, 0}, int64), zeros({0, 5}), nobody).shape() == Shape{4, 0, 9});
  CHECK(decoder.step(zeros({0}, int64), zeros({0, 5}), nobody).log_probs.shape() == Shape{0, 9});
}

TEST_CASE("decoder: mismatched sizes are errors that name both sides") {
  nn::AttentionDecoder decoder = small_decoder();
  const nn::Memory memory = decoder.prepare(zeros({7, 3, 6}));
  const Tensor hidden = zeros({1, 3, 5}), tokens = zeros({4, 3}, int64);
  CHECK_THROWS_WITH_AS(decoder.features(zeros({4, 2}, int64), hidden, memory),
                       "decoder: 2 rows of tokens, 3 of hidden [1, 3, 5]; they must be the same batch",
                       Error);
  CHECK_THROWS_WITH_AS(decoder.features(tokens, hidden, decoder.prepare(zeros({7, 2, 6}))),
                       "decoder: 3 rows of hidden, 2 of the memory [7, 2, 6]; they must be the same batch",
                       Error);
  CHECK_THROWS_WITH_AS(decoder.features(tokens, zeros({3, 6}), memory),
                       "decoder: hidden of shape [3, 6]; pass [batch, 5] or [1, batch, 5]", Error);
  CHECK_THROWS_WITH_AS(decoder.features(zeros({4, 3}), hidden, memory),
                       "decoder: tokens are float32 [4, 3]; they must be int64 [4, 3]", Error);
  CHECK_THROWS_WITH_AS(decoder.features(zeros({4}, int64), hidden, memory),
                       "decoder: tokens of shape [4]; pass [steps, batch]", Error);
  CHECK_THROWS_WITH_AS(decoder.loss(tokens, hidden, memory, zeros({3, 3}, int64)),
                       "decoder: targets are int64 [3, 3]; they must be int64 [4, 3]", Error);
  CHECK_THROWS_AS(decoder.features(full({4, 3}, 9, int64), hidden, memory), Error);
  CHECK_THROWS_AS(decoder.features(full({4, 3}, -1, int64), hidden, memory), Error);
  CHECK_THROWS_AS(decoder.loss(tokens, hidden, memory, full({4, 3}, 9, int64)), Error);
  CHECK_THROWS_AS(decoder.prepare(zeros({7, 3, 5})), Error);
  CHECK_THROWS_AS(decoder.prepare(zeros({7, 3, 6}), full({3}, 8, int64)), Error);
  CHECK_THROWS_AS(decoder.features(tokens, hidden.to(float64), memory), Error);
  Rng rng(1);
  CHECK_THROWS_AS(nn::AttentionDecoder({.vocabulary = 0, .embedding_dim = 4, .hidden_size = 4}, rng), Error);
  CHECK_THROWS_AS(
      nn::AttentionDecoder({.vocabulary = 9, .embedding_dim = 4, .hidden_size = 4, .dropout = 1.5}, rng),
      Error);
}
