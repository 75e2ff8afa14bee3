// What GRU and RAU have in common: the same cases for both.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <rill/core/core.h>
#include <rill/nn/init.h>
#include <rill/nn/recurrent/gru.h>
#include <rill/nn/recurrent/rau.h>
#include <support/expect.h>
#include <support/gradcheck_table.h>
#include <support/same.h>

namespace {

using namespace rill;
using test::check_error;
using test::largest_difference;
using test::same;
using Tensors = std::vector<Tensor>;

struct Gru {
  static constexpr const char* name = "gru";
  static constexpr const char* inner_weight = "weight_hh_l0";
  using Layers = nn::GRU;
  using Cell = nn::GRUCell;
  using Weights = nn::GruWeights;

  static std::array<Shape, 2> rest(std::int64_t hidden) { return {Shape{3 * hidden}, Shape{3 * hidden}}; }
  static constexpr std::array<bool, 2> rest_is_bias{true, true};
  static constexpr std::int64_t gates = 3;
  static nn::SequenceOutput fused(const auto&... a) { return nn::gru_sequence(a...); }
  static nn::SequenceOutput composed(const auto&... a) { return nn::reference::gru(a...); }
};

struct Rau {
  static constexpr const char* name = "rau";
  static constexpr const char* inner_weight = "cells.0.weight_aa";
  using Layers = nn::RAU;
  using Cell = nn::RAUCell;
  using Weights = nn::RauWeights;

  static std::array<Shape, 2> rest(std::int64_t hidden) { return {Shape{hidden, hidden}, Shape{4 * hidden}}; }
  static constexpr std::array<bool, 2> rest_is_bias{false, true};
  static constexpr std::int64_t gates = 4;
  static nn::SequenceOutput fused(const auto&... a) { return nn::rau_sequence(a...); }
  static nn::SequenceOutput composed(const auto&... a) { return nn::reference::rau(a...); }
};

/// One setting of a layer: what its inputs are.
struct Layer {
  std::int64_t steps, batch, input, hidden;
  std::int64_t directions = 1;
  bool bias = true;
  bool h0 = true;
  std::vector<std::int64_t> lengths = {};
};

/// The inputs of a sequence in one list: x, h0, then each direction's four weights, small enough for states
/// that do not run away from each other over many steps.
template <class Unit>
Tensors inputs_of(const Layer& l) {
  std::uint64_t seed = 1;
  const double bound = 1.5 / std::sqrt(static_cast<double>(l.hidden));
  const auto next = [&](const Shape& shape, bool wanted = true) {
    return wanted ? test::input_between(shape, -bound, bound, seed++) : Tensor();
  };
  Tensors in{next({l.steps, l.batch, l.input}), next({l.directions, l.batch, l.hidden}, l.h0)};
  for (std::int64_t d = 0; d < l.directions; ++d) {
    in.push_back(next({l.input, Unit::gates * l.hidden}));
    in.push_back(next({l.hidden, Unit::gates * l.hidden}));
    for (std::size_t i = 0; i < 2; ++i) {
      in.push_back(next(Unit::rest(l.hidden)[i], l.bias || !Unit::rest_is_bias[i]));
    }
  }
  return in;
}

/// A function of that list from one that takes weights and sequences.
template <class Unit, class F>
GradcheckFunction layer_function(const Layer& l, F f) {
  const Tensor lengths = l.lengths.empty() ? Tensor() : tensor(l.lengths, {l.batch});
  return [f, lengths](const Tensors& in) {
    std::vector<typename Unit::Weights> w;
    for (std::size_t i = 2; i < in.size(); i += 4) w.push_back({in[i], in[i + 1], in[i + 2], in[i + 3]});
    const nn::SequenceOutput out = f(in[0], w, nn::SequenceInputs{.h0 = in[1], .lengths = lengths});
    return Tensors{out.output, out.h_n};
  };
}

template <class Unit>
void same_layer(const Layer& l, const test::SameOptions& options = {}) {
  same(layer_function<Unit>(l, [](const auto&... a) { return Unit::fused(a...); }),
       layer_function<Unit>(l, [](const auto&... a) { return Unit::composed(a...); }), inputs_of<Unit>(l),
       options);
}

Tensor random(const Shape& shape, std::uint64_t seed) {
  Rng rng(seed);
  return randn(shape, rng);
}

template <class Unit>
typename Unit::Layers small_layer(std::int64_t input = 4, std::int64_t hidden = 5) {
  Rng rng(3);
  return typename Unit::Layers({.input_size = input, .hidden_size = hidden}, rng);
}

template <class Unit>
typename Unit::Layers deep_layers() {
  Rng rng(3);
  return
      typename Unit::Layers({.input_size = 4, .hidden_size = 5, .num_layers = 2, .bidirectional = true}, rng);
}

}  // namespace

TYPE_TO_STRING(Gru);
TYPE_TO_STRING(Rau);

TEST_CASE_TEMPLATE("recurrent: the op equals its definition for one step, one sequence and many", Unit, Gru,
                   Rau) {
  same_layer<Unit>({.steps = 1, .batch = 3, .input = 4, .hidden = 5});
  same_layer<Unit>({.steps = 6, .batch = 1, .input = 3, .hidden = 4});
  same_layer<Unit>({.steps = 4, .batch = 3, .input = 2, .hidden = 7});
  same_layer<Unit>({.steps = 3, .batch = 2, .input = 5, .hidden = 1});
}

TEST_CASE_TEMPLATE("recurrent: the op equals its definition without biases and first states", Unit, Gru,
                   Rau) {
  same_layer<Unit>({.steps = 4, .batch = 3, .input = 2, .hidden = 5, .bias = false});
  same_layer<Unit>({.steps = 4, .batch = 3, .input = 2, .hidden = 5, .h0 = false});
  same_layer<Unit>({.steps = 1, .batch = 2, .input = 2, .hidden = 3, .bias = false, .h0 = false});
}

TEST_CASE_TEMPLATE("recurrent: the op equals its definition in both directions", Unit, Gru, Rau) {
  same_layer<Unit>({.steps = 5, .batch = 3, .input = 4, .hidden = 3, .directions = 2});
  same_layer<Unit>({.steps = 1, .batch = 2, .input = 4, .hidden = 3, .directions = 2, .h0 = false});
}

TEST_CASE_TEMPLATE("recurrent: the op equals its definition for ragged batches in any order", Unit, Gru,
                   Rau) {
  Layer l{.steps = 5, .batch = 4, .input = 3, .hidden = 4, .lengths = {2, 5, 1, 3}};
  same_layer<Unit>(l);
  l.directions = 2;
  same_layer<Unit>(l);
  l.h0 = false;
  l.lengths = {3, 3, 3, 3};
  same_layer<Unit>(l);
  same_layer<Unit>({.steps = 4, .batch = 3, .input = 2, .hidden = 3, .directions = 2, .lengths = {4, 4, 4}});
  same_layer<Unit>({.steps = 4, .batch = 3, .input = 2, .hidden = 3, .directions = 2, .lengths = {0, 4, 2}});
  same_layer<Unit>({.steps = 3, .batch = 2, .input = 2, .hidden = 3, .lengths = {0, 0}});
}

TEST_CASE_TEMPLATE("recurrent: the op equals its definition when it is shared out to threads", Unit, Gru,
                   Rau) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = 0; b < 40; ++b) lengths.push_back(1 + b * 7 % 30);
  same_layer<Unit>({.steps = 30, .batch = 40, .input = 20, .hidden = 40});
  same_layer<Unit>(
      {.steps = 30, .batch = 40, .input = 20, .hidden = 40, .directions = 2, .lengths = lengths});
}

TEST_CASE_TEMPLATE("recurrent: the op equals its definition for batches and sequences of no size", Unit, Gru,
                   Rau) {
  same_layer<Unit>({.steps = 0, .batch = 2, .input = 3, .hidden = 4});
  same_layer<Unit>({.steps = 3, .batch = 0, .input = 3, .hidden = 4, .directions = 2});
  same_layer<Unit>({.steps = 2, .batch = 2, .input = 0, .hidden = 3});
}

TEST_CASE_TEMPLATE("recurrent: ragged lengths equal separate sequences", Unit, Gru, Rau) {
  const auto layers = deep_layers<Unit>();
  const Tensor x = random({6, 3, 4}, 7);
  const std::vector<std::int64_t> lengths{2, 6, 3};
  const auto [output, h_n] = layers(x, {.lengths = tensor(lengths, {3})});
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::int64_t n = lengths[static_cast<std::size_t>(b)];
    const auto alone = layers(x.narrow(1, b, 1).narrow(0, 0, n));
    CHECK(largest_difference(output.narrow(1, b, 1).narrow(0, 0, n), alone.output) < 1e-6);
    CHECK(largest_difference(h_n.narrow(1, b, 1), alone.h_n) < 1e-6);
    const auto padding = output.narrow(1, b, 1).narrow(0, n, 6 - n).to_vector();
    CHECK(std::all_of(padding.begin(), padding.end(), [](double v) { return v == 0; }));
  }
}

TEST_CASE_TEMPLATE("recurrent: what lies past the lengths changes nothing, not even what is not a number",
                   Unit, Gru, Rau) {
  Rng rng(3);
  const typename Unit::Layers layer({.input_size = 4, .hidden_size = 5, .bidirectional = true}, rng);
  const Tensor lengths = tensor<std::int64_t>({2, 4, 0});
  const Tensor x = random({4, 3, 4}, 7);
  Tensor junk = x.clone();
  junk.narrow(0, 2, 2).select(1, 0).fill_(std::numeric_limits<double>::quiet_NaN());
  junk.select(1, 2).fill_(std::numeric_limits<double>::infinity());
  junk.set_requires_grad();
  const auto [output, h_n] = layer(junk, {.lengths = lengths});
  CHECK(largest_difference(output, layer(x, {.lengths = lengths}).output) == 0);
  sum(output).backward();
  CHECK(test::all_finite(junk.grad()));
  CHECK(sum(abs(junk.grad().select(1, 2))).item() == 0);
  CHECK(sum(abs(junk.grad().narrow(0, 2, 2).select(1, 0))).item() == 0);
}

TEST_CASE_TEMPLATE("recurrent: a sequence without steps keeps its first state", Unit, Gru, Rau) {
  const auto layer = small_layer<Unit>(2, 3);
  const Tensor h0 = random({1, 2, 3}, 1);
  const auto some = layer(random({4, 2, 2}, 2), {.h0 = h0, .lengths = tensor<std::int64_t>({0, 4})});
  CHECK(largest_difference(some.h_n.select(1, 0), h0.select(1, 0)) == 0);
  CHECK(sum(abs(some.output.select(1, 0))).item() == 0);
  const auto none = layer(zeros({0, 2, 2}), {.h0 = h0});
  CHECK(none.output.shape() == Shape{0, 2, 3});
  CHECK(largest_difference(none.h_n, h0) == 0);
}

TEST_CASE_TEMPLATE("recurrent: batch first is the same with the first two dimensions exchanged", Unit, Gru,
                   Rau) {
  Rng one(3), two(3);
  using Layers = typename Unit::Layers;
  const Layers time_first({.input_size = 4, .hidden_size = 5, .num_layers = 2}, one);
  const Layers batch_first({.input_size = 4, .hidden_size = 5, .num_layers = 2, .batch_first = true}, two);
  const Tensor x = random({6, 3, 4}, 7);
  const auto a = time_first(x), b = batch_first(x.transpose(0, 1).contiguous());
  CHECK(b.output.shape() == Shape{3, 6, 5});
  CHECK(largest_difference(a.output.transpose(0, 1), b.output) == 0);
  CHECK(largest_difference(a.h_n, b.h_n) == 0);
}

TEST_CASE_TEMPLATE("recurrent: a kept graph gives the same gradients again", Unit, Gru, Rau) {
  const auto layer = small_layer<Unit>();
  const Tensor loss = sum(square(layer(random({6, 3, 4}, 7)).output));
  std::vector<Tensor> first;
  backward(loss, {.keep = true});
  for (const Tensor& p : layer.parameters()) {
    first.push_back(p.grad().clone());
    Tensor(p).zero_grad();
  }
  backward(loss);
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(largest_difference(first[i], layer.parameters()[i].grad()) == 0);
  }
}

TEST_CASE_TEMPLATE("recurrent: a state or weight changed in place before the gradient is an error", Unit, Gru,
                   Rau) {
  const auto layer = small_layer<Unit>(2, 3);
  const auto out = layer(random({4, 2, 2}, 2));
  SUBCASE("state") { out.output.detach().fill_(1); }
  SUBCASE("weight") { nn::init::zeros_(layer.parameter(Unit::inner_weight)); }
  check_error([&] { sum(out.output).backward(); }, "changed in place");
}

TEST_CASE_TEMPLATE("recurrent: a changed weight is used at once", Unit, Gru, Rau) {
  const auto layer = small_layer<Unit>(2, 3);
  const Tensor x = random({4, 2, 2}, 2);
  const NoGrad no_grad;
  const Tensor before = layer(x).output.clone();
  layer.parameter(Unit::inner_weight).fill_(3);
  CHECK(largest_difference(before, layer(x).output) > 1e-3);
}

TEST_CASE_TEMPLATE("recurrent: large inputs saturate instead of overflowing", Unit, Gru, Rau) {
  const auto layer = small_layer<Unit>(2, 3);
  Tensor x = full({3, 2, 2}, 1e30);
  x.set_requires_grad();
  const auto out = layer(x);
  sum(out.output).backward();
  CHECK(test::all_finite(out.output));
  CHECK(test::all_finite(x.grad()));
}

TEST_CASE_TEMPLATE("recurrent: dropout acts between layers and only while training", Unit, Gru, Rau) {
  const nn::RecurrentOptions options{.input_size = 4, .hidden_size = 50, .num_layers = 2, .dropout = 0.5};
  Rng rng(3);
  typename Unit::Layers layers(options, rng);
  const Tensor x = random({6, 3, 4}, 7);
  const Tensor a = layers(x).output, b = layers(x).output;
  CHECK(largest_difference(a, b) > 1e-3);
  layers.eval();
  CHECK(largest_difference(layers(x).output, layers(x).output) == 0);

  Rng again(3);
  typename Unit::Layers resumed(options, again);
  CHECK(largest_difference(resumed(x).output, a) == 0);
  CHECK(largest_difference(resumed(x).output, b) == 0);
  layers.train();
  resumed.load_counters(layers.counters());
  CHECK(largest_difference(resumed(x).output, layers(x).output) == 0);
}

TEST_CASE_TEMPLATE("recurrent: what does not fit is an error that names both sides", Unit, Gru, Rau) {
  const auto layer = small_layer<Unit>();
  const auto run = [&](const Shape& shape, const nn::SequenceInputs& given = {}, DType dtype = float32) {
    return [&layer, shape, given, dtype] { layer(zeros(shape, dtype), given); };
  };
  check_error(run({2, 4}), std::string(Unit::name) + ": the input is [2, 4]; this layer needs [T, B, 4]");
  check_error(run({2, 3, 7}), "the input is [2, 3, 7]; this layer needs [T, B, 4]");
  check_error(run({2, 3, 4}, {.h0 = zeros({1, 2, 5})}),
              "h0 is [1, 2, 5]; an input of [2, 3, 4] needs [1, 3, 5]");
  check_error(run({2, 3, 4}, {.lengths = tensor<std::int64_t>({1, 2})}), "lengths are int64 [2]");
  check_error(run({2, 3, 4}, {.lengths = tensor<std::int64_t>({1, 3, 2})}),
              "length 3 of sequence 1 is outside 0..2");
  check_error(run({2, 3, 4}, {.lengths = tensor<std::int64_t>({1, -1, 2})}),
              "length -1 of sequence 1 is outside 0..2");
  check_error(run({2, 3, 4}, {}, float64), "dtypes float64 (input) and float32 (input weight) differ");
  check_error(run({2, 3, 4}, {}, int64), "the input is int64");

  Rng rng(3);
  check_error([&] { small_layer<Unit>(0, 5); }, "input_size 0");
  check_error([&] { typename Unit::Layers({.input_size = 2, .hidden_size = 5, .dropout = 1.5}, rng); },
              "p 1.5 is outside 0..1");
  check_error([&] { typename Unit::Cell({.input_size = 3, .hidden_size = 0}, rng); },
              "input_size 3 and hidden_size 0");
  const typename Unit::Cell cell({.input_size = 4, .hidden_size = 5}, rng);
  check_error([&] { cell(zeros({3, 2})); }, "the input is [3, 2]; a cell needs [B, 4]");
  check_error(
      [&] {
        cell(zeros({3, 4}), zeros({2, 5}));
      },
      "the state is [2, 5]; an input of [3, 4] needs [3, 5]");
  typename Unit::Weights wrong = cell.weights();
  wrong.hh = zeros({5, 12});
  check_error(
      [&] {
        Unit::fused(zeros({2, 3, 4}), std::span(&wrong, 1));
      },
      fmt::format("the hidden weight is [5, 12]; 5 hidden need [5, {}]", 5 * Unit::gates));
  check_error(
      [&] {
        Unit::fused(zeros({2, 3, 4}), std::span<const typename Unit::Weights>());
      },
      "0 directions");
}
