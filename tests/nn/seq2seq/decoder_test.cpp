#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <rill/core/core.h>
#include <rill/core/gemm/packed_matrix.h>
#include <rill/nn/seq2seq/decoder.h>
#include <support/gradcheck_table.h>
#include <support/reference.h>
#include <support/same.h>

namespace {

using namespace rill;
using nn::Cell;
using Tensors = std::vector<Tensor>;

/// One setting of the recurrence.
struct Setting {
  Cell cell = Cell::gru;
  std::int64_t steps = 4, batch = 3, hidden = 5, size = 4, width = 6, positions = 5;
  std::int64_t embedded = 0;
  bool attention = true;
  bool relu = true;
  std::vector<std::int64_t> lengths = {};   ///< of the sources
  std::vector<std::int64_t> steps_of = {};  ///< steps of each sequence

  std::int64_t gates() const { return (cell == Cell::gru ? 3 : 4) * hidden; }
  nn::SequenceRows rows() const {
    return {"test", steps, batch, steps_of.empty() ? Tensor() : tensor(steps_of, {batch})};
  }
};

/// gates, embedded, hidden, then the weights query, v, context, hidden, bias, candidate, then keys and
/// values.
Tensors inputs_of(const Setting& s) {
  std::uint64_t seed = 1;
  const auto next = [&](const Shape& shape, bool wanted = true) {
    const double bound = 1.5 / std::sqrt(static_cast<double>(s.hidden));
    return wanted ? test::input_between(shape, -bound, bound, seed++) : Tensor();
  };
  const bool gru = s.cell == Cell::gru;
  const std::int64_t rows = s.rows().count();
  return {next({rows, s.gates()}),
          next({rows, s.embedded}, s.embedded > 0),
          next({s.batch, s.hidden}),
          next({s.hidden, s.size}, s.attention),
          next({s.size}, s.attention),
          next({s.width, s.gates()}),
          next({s.hidden, s.gates()}),
          next({s.gates()}, gru),
          next({s.hidden, s.hidden}, !gru),
          next({s.positions, s.batch, s.size}, s.attention),
          next({s.positions, s.batch, s.width})};
}

struct Given {
  nn::DecoderInputs inputs;
  nn::DecoderWeights weights;
  nn::Memory memory;
};

Given given(const Setting& s, const Tensors& in) {
  return {.inputs = {in[0], in[1], in[2]},
          .weights = {in[3], in[4], in[5], in[6], in[7], in[8]},
          .memory = {.values = in[10],
                     .keys = in[9],
                     .lengths = s.lengths.empty() ? Tensor() : tensor(s.lengths, {s.batch})}};
}

GradcheckFunction fused(const Setting& s) {
  return [s](const Tensors& in) {
    const Given g = given(s, in);
    const nn::DecoderOutputs out =
        nn::decoder_sequence(s.cell, s.rows(), g.inputs, g.weights, g.memory, s.relu);
    return Tensors{out.joined, out.weights, out.hidden};
  };
}

/// The definition over all steps, of which the rows that a ragged batch has are taken.
GradcheckFunction composed(const Setting& s) {
  return [s](const Tensors& in) {
    Given g = given(s, in);
    const nn::SequenceRows rows = s.rows(), all("test", s.steps, s.batch, Tensor());
    std::vector<std::int64_t> place, last;
    for (std::int64_t t = 0; t < s.steps; ++t) {
      for (std::int64_t p = 0; p < rows.active(t); ++p) place.push_back(t * s.batch + rows.sequence(p));
    }
    for (std::int64_t b = 0; b < s.batch; ++b) {
      last.push_back((s.steps_of.empty() ? s.steps : s.steps_of[static_cast<std::size_t>(b)]) * s.batch + b);
    }
    const Tensor picked = tensor(place, {rows.count()});
    const auto widened = [&](const Tensor& x) {
      return x.defined() ? index_add(zeros({s.steps * s.batch, x.size(1)}, x.dtype()), 0, picked, x) : x;
    };
    g.inputs.gates = widened(g.inputs.gates);
    g.inputs.embedded = widened(g.inputs.embedded);
    const nn::DecoderOutputs out =
        nn::reference::decoder_sequence(s.cell, all, g.inputs, g.weights, g.memory, s.relu);
    // The op's three results have one history; these may lack it.
    const Tensor none = mul(sum(out.joined), 0);
    const Tensor states = cat({g.inputs.hidden, out.joined.narrow(1, 0, s.hidden)}, 0);
    return Tensors{index_select(out.joined, 0, picked), index_select(out.weights, 0, picked) + none,
                   index_select(states, 0, tensor(last, {s.batch}))};
  };
}

void same_decoder(const Setting& s) { test::same(fused(s), composed(s), inputs_of(s)); }

}  // namespace

TEST_CASE("decoder: the op over all steps equals its definition with a GRU") {
  same_decoder({});
  same_decoder({.embedded = 3});
  same_decoder({.relu = false});
  same_decoder({.steps = 1, .batch = 1});
  same_decoder({.steps = 6, .batch = 9, .hidden = 40, .size = 33, .width = 50, .positions = 11});
}

TEST_CASE("decoder: the op over all steps equals its definition with a RAU") {
  same_decoder({.cell = Cell::rau});
  same_decoder({.cell = Cell::rau, .embedded = 3, .relu = false});
  same_decoder(
      {.cell = Cell::rau, .steps = 6, .batch = 9, .hidden = 40, .size = 33, .width = 50, .positions = 11});
}

TEST_CASE("decoder: the op equals its definition for ragged sources and sequences") {
  same_decoder({.lengths = {5, 2, 0}});
  same_decoder({.embedded = 2, .lengths = {3, 5, 1}, .steps_of = {2, 4, 3}});
  same_decoder({.cell = Cell::rau, .steps_of = {0, 4, 1}});
}

TEST_CASE("decoder: the op equals its definition without attention") {
  same_decoder({.attention = false});
  same_decoder({.attention = false, .lengths = {5, 0, 2}});
  same_decoder({.cell = Cell::rau, .embedded = 2, .attention = false, .relu = false});
}

// --- the module

namespace {

nn::AttentionDecoder reference_decoder(const test::Reference& want) {
  Rng rng(1);
  nn::AttentionDecoder decoder({.vocabulary = 11, .embedding_dim = 6, .hidden_size = 6, .dropout = 0}, rng);
  want.load_into(decoder);
  return decoder;
}

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

double largest_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const std::vector<double> x = a.to_vector(), y = b.to_vector();
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::fabs(x[i] - y[i]));
  return worst;
}

}  // namespace

TEST_CASE("decoder: one step gives the reference values") {
  for (const char* prefix : {"step_b1", "step_batch_masked"}) {
    CAPTURE(prefix);
    const test::Reference want("attn_decoder_step.safetensors", prefix);
    const nn::AttentionDecoder decoder = reference_decoder(want);
    const Tensor hidden = want.input("hidden"), outputs = want.input("encoder_outputs");
    const nn::DecoderStep step =
        decoder.step(want("in.token"), hidden, decoder.prepare(outputs, want("in.lengths")));
    want.check_equal(step.log_probs, "out.log_probs");
    want.check_equal(step.hidden, "out.hidden");
    want.check_equal(step.weights, "out.weights");
    backward(Tensors{step.log_probs, step.hidden, step.weights},
             Tensors{want("gout.log_probs"), want("gout.hidden"), want("gout.weights")});
    want.check_gradient(hidden, "hidden");
    want.check_gradient(outputs, "encoder_outputs");
    want.check_gradients(decoder);
  }
}

TEST_CASE("decoder: teacher forcing gives the reference values") {
  for (const auto& [file, prefix] :
       {std::pair{"attn_decoder_unroll_b1.safetensors", "unroll_b1"},
        std::pair{"attn_decoder_unroll_masked.safetensors", "unroll_batch_masked"}}) {
    CAPTURE(prefix);
    const test::Reference want(file, prefix);
    const nn::AttentionDecoder decoder = reference_decoder(want);
    const Tensor hidden = want.input("hidden"), outputs = want.input("encoder_outputs");
    const nn::Memory memory = decoder.prepare(outputs, want("in.lengths"));
    const nn::DecoderFeatures features = decoder.features(want("in.dec_in"), hidden, memory);
    want.check_equal(decoder.log_probs(features), "out.log_probs");
    want.check_equal(features.weights, "out.weights");
    want.check_equal(features.hidden, "out.hidden");
    const CrossEntropyOptions summed{.ignore_index = 0, .reduction = Reduction::sum};
    const Tensor loss = decoder.loss(want("in.dec_in"), hidden, memory, want("in.target"), summed);
    want.check_equal(loss, "out.loss");
    loss.backward();
    want.check_gradient(hidden, "hidden");
    want.check_gradient(outputs, "encoder_outputs");
    want.check_gradients(decoder);
  }
}

TEST_CASE("decoder: the loss of the features is the loss of the tokens") {
  for (const Cell cell : {Cell::gru, Cell::rau}) {
    nn::AttentionDecoder decoder = small_decoder({.dropout = 0, .cell = cell, .output_embedding = true});
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

TEST_CASE("decoder: steps one after another equal teacher forcing") {
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
        Tensor h = hidden;
        for (std::int64_t t = 0; t < 4; ++t) {
          const std::optional<NoGrad> off = recorded ? std::nullopt : std::optional<NoGrad>(std::in_place);
          const nn::DecoderStep next = decoder.step(tokens.select(0, t), h, memory);
          CHECK(largest_difference(next.log_probs, all.select(0, t)) < 1e-5);
          CHECK(largest_difference(next.weights.squeeze(1), features.weights.select(0, t)) < 1e-6);
          h = next.hidden;
        }
        CHECK(largest_difference(h, features.hidden) < 1e-6);
      }
    }
  }
}

TEST_CASE("decoder: without attention the context stands still") {
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

TEST_CASE(
    "decoder: a row decoded alone gives the bits it has in a small batch, and in a large one up to "
    "rounding") {
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
    CHECK(largest_difference(one.hidden, all.hidden.narrow(0, 6, 1)) <= most);
  }
}

TEST_CASE("decoder: a kept graph gives the same gradients again, and the last time too") {
  for (const Cell cell : {Cell::gru, Cell::rau}) {
    const nn::AttentionDecoder decoder = small_decoder({.dropout = 0, .cell = cell});
    Rng rng(2);
    const Tensor outputs = randn({7, 3, 6}, rng), hidden = randn({3, 5}, rng);
    const nn::DecoderFeatures f =
        decoder.features(random_tokens({4, 3}, 3), hidden, decoder.prepare(outputs));
    const Tensor loss = sum(f.joined * f.joined);
    std::vector<Tensor> first;
    for (const bool keep : {true, true, false}) {
      for (Tensor p : decoder.parameters()) p.zero_grad();
      backward(loss, {.keep = keep});
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

TEST_CASE("decoder: dropout acts while training and is off in eval") {
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

TEST_CASE("decoder: the names of the parameters") {
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
      "embedding.weight rau.weight_xr rau.weight_hr rau.weight_xz rau.weight_hz rau.weight_xh rau.weight_hh "
      "rau.weight_xa rau.weight_ha rau.weight_aa rau.bias_r rau.bias_z rau.bias_h rau.bias_a readout.weight "
      "readout.bias out.weight out.bias ");
}

TEST_CASE("decoder: no steps and no rows give empty results and no gradient") {
  nn::AttentionDecoder decoder = small_decoder();
  Rng rng(2);
  Tensor hidden = randn({1, 3, 5}, rng).set_requires_grad();
  const nn::DecoderFeatures none =
      decoder.features(zeros({0, 3}, int64), hidden, decoder.prepare(randn({7, 3, 6}, rng)));
  CHECK(none.joined.shape() == Shape{0, 3, 11});
  CHECK(none.weights.shape() == Shape{0, 3, 7});
  CHECK(largest_difference(none.hidden, hidden) == 0);
  sum(none.hidden).backward();
  CHECK(hidden.grad().to_vector() == std::vector<double>(15, 1.0));
  const nn::Memory nobody = decoder.prepare(zeros({7, 0, 6}));
  CHECK(decoder.log_probs(zeros({4, 0}, int64), zeros({0, 5}), nobody).shape() == Shape{4, 0, 9});
  CHECK(decoder.step(zeros({0}, int64), zeros({0, 5}), nobody).log_probs.shape() == Shape{0, 9});
}

TEST_CASE("decoder: parts that do not fit each other are an error that names both sides") {
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
