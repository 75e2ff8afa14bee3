#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <rill/core/core.h>
#include <rill/nn/rau.h>
#include <support/gradcheck_table.h>
#include <support/same.h>

namespace {

using namespace rill;
using test::same;
using Tensors = std::vector<Tensor>;

/// One setting of a layer: what its inputs are.
struct Layer {
  std::int64_t steps, batch, input, hidden;
  std::int64_t directions = 1;
  bool bias = true;
  bool h0 = true;
  std::vector<std::int64_t> lengths = {};
};

/// Inputs of rau_sequence in one list: x, h0, then each direction's weights.
Tensors inputs_of(const Layer& l) {
  std::uint64_t seed = 1;
  const double bound = 1.5 / std::sqrt(static_cast<double>(l.hidden));
  const auto next = [&](const Shape& shape, bool wanted = true) {
    return wanted ? test::input_between(shape, -bound, bound, seed++) : Tensor();
  };
  Tensors in{next({l.steps, l.batch, l.input}), next({l.directions, l.batch, l.hidden}, l.h0)};
  for (std::int64_t d = 0; d < l.directions; ++d) {
    in.push_back(next({l.input, 4 * l.hidden}));
    in.push_back(next({l.hidden, 4 * l.hidden}));
    in.push_back(next({l.hidden, l.hidden}));
    in.push_back(next({4 * l.hidden}, l.bias));
  }
  return in;
}

/// A function of that list from one that takes weights and sequences.
template <class F>
GradcheckFunction layer_function(const Layer& l, F f) {
  const Tensor lengths = l.lengths.empty() ? Tensor() : tensor(l.lengths, {l.batch});
  return [f, lengths](const Tensors& in) {
    std::vector<nn::RauWeights> w;
    for (std::size_t i = 2; i < in.size(); i += 4) w.push_back({in[i], in[i + 1], in[i + 2], in[i + 3]});
    const nn::SequenceOutput out = f(in[0], w, nn::SequenceInputs{.h0 = in[1], .lengths = lengths});
    return Tensors{out.output, out.h_n};
  };
}

void same_layer(const Layer& l) {
  same(layer_function(l, [](const auto&... a) { return nn::rau_sequence(a...); }),
       layer_function(l, [](const auto&... a) { return nn::reference::rau(a...); }), inputs_of(l));
}

Tensor random(const Shape& shape, std::uint64_t seed) {
  Rng rng(seed);
  return randn(shape, rng);
}

double largest_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const auto x = a.to_vector(), y = b.to_vector();
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(x[i] - y[i]));
  return largest;
}

bool all_finite(const Tensor& t) {
  const auto values = t.to_vector();
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

void says(const std::function<void()>& f, const std::string& text) {
  std::string message = "no error";
  try {
    f();
  } catch (const Error& e) {
    message = e.what();
  }
  CHECK_MESSAGE(message.find(text) != std::string::npos, message);
}

}  // namespace

TEST_CASE("rau: the op equals its definition for one step, one sequence and many") {
  same_layer({.steps = 1, .batch = 3, .input = 4, .hidden = 5});
  same_layer({.steps = 6, .batch = 1, .input = 3, .hidden = 4});
  same_layer({.steps = 4, .batch = 3, .input = 2, .hidden = 7});
  same_layer({.steps = 3, .batch = 2, .input = 5, .hidden = 1});
}

TEST_CASE("rau: the op equals its definition without biases and without first states") {
  same_layer({.steps = 4, .batch = 3, .input = 2, .hidden = 5, .bias = false});
  same_layer({.steps = 4, .batch = 3, .input = 2, .hidden = 5, .h0 = false});
}

TEST_CASE("rau: the op equals its definition in both directions") {
  same_layer({.steps = 5, .batch = 3, .input = 4, .hidden = 3, .directions = 2});
  same_layer({.steps = 1, .batch = 2, .input = 4, .hidden = 3, .directions = 2, .h0 = false});
}

TEST_CASE("rau: the op equals its definition for ragged batches in any order") {
  same_layer({.steps = 5, .batch = 4, .input = 3, .hidden = 4, .lengths = {2, 5, 1, 3}});
  same_layer({.steps = 5, .batch = 4, .input = 3, .hidden = 4, .directions = 2, .lengths = {2, 5, 1, 3}});
  same_layer(
      {.steps = 4, .batch = 3, .input = 2, .hidden = 3, .directions = 2, .h0 = false, .lengths = {3, 3, 3}});
  same_layer({.steps = 4, .batch = 3, .input = 2, .hidden = 3, .directions = 2, .lengths = {0, 4, 2}});
  same_layer({.steps = 3, .batch = 2, .input = 2, .hidden = 3, .lengths = {0, 0}});
}

TEST_CASE("rau: the op equals its definition when it is shared out to threads") {
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = 0; b < 32; ++b) lengths.push_back(1 + b * 7 % 24);
  same_layer({.steps = 24, .batch = 32, .input = 20, .hidden = 40});
  same_layer({.steps = 24, .batch = 32, .input = 20, .hidden = 40, .directions = 2, .lengths = lengths});
}

TEST_CASE("rau: the op equals its definition for batches and sequences of no size") {
  same_layer({.steps = 0, .batch = 2, .input = 3, .hidden = 4});
  same_layer({.steps = 3, .batch = 0, .input = 3, .hidden = 4, .directions = 2});
  same_layer({.steps = 2, .batch = 2, .input = 0, .hidden = 3});
}

TEST_CASE("rau: sizes of output and last states, batch first") {
  Rng rng(1);
  const nn::RAU rau({.input_size = 16, .hidden_size = 32, .batch_first = true}, rng);
  const auto [output, h_n] = rau(random({8, 10, 16}, 2));
  CHECK(output.shape() == Shape{8, 10, 32});
  CHECK(h_n.shape() == Shape{1, 8, 32});
  CHECK(largest_difference(output.select(1, 9), h_n.select(0, 0)) == 0);
  const nn::RAU deep({.input_size = 4, .hidden_size = 5, .num_layers = 3, .bidirectional = true}, rng);
  CHECK(deep(random({6, 2, 4}, 3)).output.shape() == Shape{6, 2, 10});
  CHECK(deep(random({6, 2, 4}, 3)).h_n.shape() == Shape{6, 2, 5});
}

TEST_CASE("rau: layers and a cell give the states that the definition gives") {
  Rng rng(5);
  nn::RAU rau({.input_size = 4, .hidden_size = 5, .num_layers = 2, .bidirectional = true}, rng);
  const Tensor x = random({6, 3, 4}, 7), h0 = random({4, 3, 5}, 8), lengths = tensor<std::int64_t>({6, 2, 4});
  const auto first = nn::reference::rau(x, rau.weights(0), {.h0 = h0.narrow(0, 0, 2), .lengths = lengths});
  const auto second =
      nn::reference::rau(first.output, rau.weights(1), {.h0 = h0.narrow(0, 2, 2), .lengths = lengths});
  const auto got = rau(x, {.h0 = h0, .lengths = lengths});
  CHECK(largest_difference(got.output, second.output) < 1e-6);
  CHECK(largest_difference(got.h_n, cat({first.h_n, second.h_n})) < 1e-6);

  const nn::RAUCell cell({.input_size = 4, .hidden_size = 5}, rng);
  const Tensor h = random({3, 5}, 9);
  CHECK(largest_difference(cell(x.select(0, 0), h),
                           nn::reference::rau_step(x.select(0, 0), h, cell.weights())) < 1e-6);
  CHECK(largest_difference(cell(x.select(0, 0)), cell(x.select(0, 0), zeros({3, 5}))) == 0);
}

TEST_CASE("rau: ragged lengths equal separate sequences") {
  Rng rng(3);
  const nn::RAU rau({.input_size = 4, .hidden_size = 5, .num_layers = 2, .bidirectional = true}, rng);
  const Tensor x = random({6, 3, 4}, 7);
  const std::vector<std::int64_t> lengths{2, 6, 3};
  const auto [output, h_n] = rau(x, {.lengths = tensor(lengths, {3})});
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::int64_t n = lengths[static_cast<std::size_t>(b)];
    const auto alone = rau(x.narrow(1, b, 1).narrow(0, 0, n));
    CHECK(largest_difference(output.narrow(1, b, 1).narrow(0, 0, n), alone.output) < 1e-6);
    CHECK(largest_difference(h_n.narrow(1, b, 1), alone.h_n) < 1e-6);
    CHECK(sum(abs(output.narrow(1, b, 1).narrow(0, n, 6 - n))).item() == 0);
  }
}

TEST_CASE("rau: what lies past the lengths changes nothing, not even when it is not a number") {
  Rng rng(3);
  const nn::RAU rau({.input_size = 4, .hidden_size = 5, .bidirectional = true}, rng);
  const Tensor lengths = tensor<std::int64_t>({2, 4, 0});
  const Tensor x = random({4, 3, 4}, 7);
  Tensor junk = x.clone();
  junk.narrow(0, 2, 2).select(1, 0).fill_(std::numeric_limits<double>::quiet_NaN());
  junk.select(1, 2).fill_(std::numeric_limits<double>::infinity());
  junk.set_requires_grad();
  const auto out = rau(junk, {.lengths = lengths});
  CHECK(largest_difference(out.output, rau(x, {.lengths = lengths}).output) == 0);
  sum(out.output).backward();
  CHECK(all_finite(junk.grad()));
  CHECK(sum(abs(junk.grad().select(1, 2))).item() == 0);
}

TEST_CASE("rau: a kept graph gives the same gradients again") {
  Rng rng(3);
  const nn::RAU rau({.input_size = 4, .hidden_size = 5}, rng);
  const Tensor loss = sum(square(rau(random({6, 3, 4}, 7)).output));
  std::vector<Tensor> first;
  backward(loss, {.keep = true});
  for (const Tensor& p : rau.parameters()) {
    first.push_back(p.grad().clone());
    Tensor(p).zero_grad();
  }
  backward(loss);
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(largest_difference(first[i], rau.parameters()[i].grad()) == 0);
  }
}

TEST_CASE("rau: a changed weight is used at once, and is an error for a gradient that needs the old one") {
  Rng rng(3);
  const nn::RAU rau({.input_size = 2, .hidden_size = 3}, rng);
  const Tensor x = random({4, 2, 2}, 2);
  const auto old = rau(x);
  {
    const NoGrad no_grad;
    rau.parameter("cells.0.weight_aa").fill_(3);
    CHECK(largest_difference(old.output, rau(x).output) > 1e-3);
  }
  says([&] { sum(old.output).backward(); }, "changed in place");
}

TEST_CASE("rau: large inputs saturate instead of overflowing") {
  Rng rng(3);
  const nn::RAU rau({.input_size = 2, .hidden_size = 3}, rng);
  Tensor x = full({3, 2, 2}, 1e30);
  x.set_requires_grad();
  const auto out = rau(x);
  sum(out.output).backward();
  CHECK(all_finite(out.output));
  CHECK(all_finite(x.grad()));
}

TEST_CASE("rau: each gate's weight is orthogonal at first, biases are zero") {
  Rng rng(3);
  const nn::RAU rau({.input_size = 4, .hidden_size = 6}, rng);
  for (const auto& [name, w] : rau.named_parameters()) {
    CAPTURE(name);
    if (w.dim() == 1) {
      CHECK(sum(abs(w)).item() == 0);
      continue;
    }
    const Tensor product = w.size(0) < w.size(1) ? matmul(w, w.t()) : matmul(w.t(), w);
    for (std::int64_t i = 0; i < product.size(0); ++i) {
      for (std::int64_t j = 0; j < product.size(1); ++j) {
        CHECK(std::abs(product.select(0, i).select(0, j).item() - (i == j ? 1 : 0)) < 1e-5);
      }
    }
  }
}

TEST_CASE("rau: names and shapes of the parameters") {
  Rng rng(3);
  const nn::RAU rau({.input_size = 4, .hidden_size = 5, .num_layers = 2, .bidirectional = true}, rng);
  const auto named = rau.named_parameters();
  REQUIRE(named.size() == 4 * 13);
  const std::vector<std::string> order{"weight_xr", "weight_hr", "weight_xz", "weight_hz", "weight_xh",
                                       "weight_hh", "weight_xa", "weight_ha", "weight_aa", "bias_r",
                                       "bias_z",    "bias_h",    "bias_a"};
  for (std::size_t i = 0; i < order.size(); ++i) {
    CHECK(named[i].first == "cells.0." + order[i]);
    CHECK(named[13 + i].first == "cells.0_reverse." + order[i]);
  }
  CHECK(rau.parameter("cells.0.weight_xa").shape() == Shape{4, 5});
  CHECK(rau.parameter("cells.1_reverse.weight_xa").shape() == Shape{10, 5});
  CHECK(rau.parameter("cells.1.bias_h").shape() == Shape{5});
  const nn::RAUCell plain({.input_size = 4, .hidden_size = 5, .bias = false}, rng);
  CHECK(plain.named_parameters().size() == 9);
  CHECK(plain.num_parameters() == 4 * (4 * 5) + 5 * (5 * 5));
}

TEST_CASE("rau: dropout acts between layers and only while training") {
  Rng rng(3);
  nn::RAU rau({.input_size = 4, .hidden_size = 50, .num_layers = 2, .dropout = 0.5}, rng);
  const Tensor x = random({6, 3, 4}, 7);
  CHECK(largest_difference(rau(x).output, rau(x).output) > 1e-3);
  rau.eval();
  CHECK(largest_difference(rau(x).output, rau(x).output) == 0);
}

TEST_CASE("rau: what does not fit is an error that names both sides") {
  Rng rng(3);
  const nn::RAU rau({.input_size = 4, .hidden_size = 5}, rng);
  says([&] { rau(zeros({2, 4})); }, "rau: the input is [2, 4]; this layer needs [T, B, 4]");
  says([&] { rau(zeros({2, 3, 7})); }, "rau: the input is [2, 3, 7]; this layer needs [T, B, 4]");
  says(
      [&] {
        rau(zeros({2, 3, 4}), nn::SequenceInputs{.h0 = zeros({1, 2, 5})});
      },
      "rau: h0 is [1, 2, 5]; an input of [2, 3, 4] needs [1, 3, 5]");
  says(
      [&] {
        rau(zeros({2, 3, 4}), nn::SequenceInputs{.lengths = tensor<std::int64_t>({1, 3, 2})});
      },
      "length 3 of sequence 1 is outside 0..2");
  says([&] { rau(zeros({2, 3, 4}, float64)); }, "dtypes float64 (input) and float32 (input weight) differ");
  says([&] { rau(zeros({2, 3, 4}, int64)); }, "rau: the input is int64");
  says([&] { nn::RAU({.input_size = 0, .hidden_size = 5}, rng); }, "RAU: input_size 0");
  says([&] { nn::RAUCell({.input_size = 3, .hidden_size = 0}, rng); },
       "RAUCell: input_size 3 and hidden_size 0");
  const nn::RAUCell cell({.input_size = 4, .hidden_size = 5}, rng);
  says([&] { cell(zeros({3, 2})); }, "rau: the input is [3, 2]; a cell needs [B, 4]");
  says(
      [&] {
        cell(zeros({3, 4}), zeros({2, 5}));
      },
      "rau: the state is [2, 5]; an input of [3, 4] needs [3, 5]");
  nn::RauWeights wrong = cell.weights();
  wrong.aa = zeros({5, 4});
  says(
      [&] {
        nn::rau_sequence(zeros({2, 3, 4}), std::span(&wrong, 1));
      },
      "rau: the weight_aa is [5, 4]; it needs [5, 5]");
  wrong.aa = Tensor();
  says([&] { nn::rau_sequence(zeros({2, 3, 4}), std::span(&wrong, 1)); }, "rau: weight_aa is missing");
  says([&] { nn::rau_sequence(zeros({2, 3, 4}), {}); }, "rau: 0 directions");
}
