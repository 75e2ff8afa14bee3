#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <rill/core/core.h>
#include <rill/nn/gru.h>
#include <rill/nn/init.h>
#include <support/expect.h>
#include <support/gradcheck_table.h>
#include <support/reference.h>
#include <support/same.h>

namespace {

using namespace rill;
using test::check_error;
using test::largest_difference;
using test::Reference;
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

/// Inputs of gru_sequence in one list: x, h0, then each direction's weights, small enough for states that do
/// not run away from each other over many steps.
Tensors inputs_of(const Layer& l) {
  std::uint64_t seed = 1;
  const auto next = [&](const Shape& shape, bool wanted = true) {
    const double bound = 1.5 / std::sqrt(static_cast<double>(l.hidden));
    return wanted ? test::input_between(shape, -bound, bound, seed++) : Tensor();
  };
  Tensors in{next({l.steps, l.batch, l.input}), next({l.directions, l.batch, l.hidden}, l.h0)};
  for (std::int64_t d = 0; d < l.directions; ++d) {
    in.push_back(next({l.input, 3 * l.hidden}));
    in.push_back(next({l.hidden, 3 * l.hidden}));
    for (int side = 0; side < 2; ++side) in.push_back(next({3 * l.hidden}, l.bias));
  }
  return in;
}

/// A function of that list from one that takes weights and sequences.
template <class F>
GradcheckFunction layer_function(const Layer& l, F f) {
  const Tensor lengths = l.lengths.empty() ? Tensor() : tensor(l.lengths, {l.batch});
  return [f, lengths](const Tensors& in) {
    std::vector<nn::GruWeights> w;
    for (std::size_t i = 2; i < in.size(); i += 4) w.push_back({in[i], in[i + 1], in[i + 2], in[i + 3]});
    const nn::SequenceOutput out = f(in[0], w, nn::SequenceInputs{.h0 = in[1], .lengths = lengths});
    return Tensors{out.output, out.h_n};
  };
}

void same_layer(const Layer& l) {
  same(layer_function(l, [](const auto&... a) { return nn::gru_sequence(a...); }),
       layer_function(l, [](const auto&... a) { return nn::reference::gru(a...); }), inputs_of(l));
}

Tensor random(const Shape& shape, std::uint64_t seed) {
  Rng rng(seed);
  return randn(shape, rng);
}

}  // namespace

TEST_CASE("gru: the op equals its definition for one step, one sequence and many") {
  same_layer({.steps = 1, .batch = 3, .input = 4, .hidden = 5});
  same_layer({.steps = 6, .batch = 1, .input = 3, .hidden = 4});
  same_layer({.steps = 4, .batch = 3, .input = 2, .hidden = 7});
  same_layer({.steps = 3, .batch = 2, .input = 5, .hidden = 1});
}

TEST_CASE("gru: the op equals its definition without biases and without first states") {
  same_layer({.steps = 4, .batch = 3, .input = 2, .hidden = 5, .bias = false});
  same_layer({.steps = 4, .batch = 3, .input = 2, .hidden = 5, .h0 = false});
  same_layer({.steps = 1, .batch = 2, .input = 2, .hidden = 3, .bias = false, .h0 = false});
}

TEST_CASE("gru: the op equals its definition in both directions") {
  same_layer({.steps = 5, .batch = 3, .input = 4, .hidden = 3, .directions = 2});
  same_layer({.steps = 1, .batch = 2, .input = 4, .hidden = 3, .directions = 2, .h0 = false});
}

TEST_CASE("gru: the op equals its definition for ragged batches in any order") {
  same_layer({.steps = 5, .batch = 4, .input = 3, .hidden = 4, .lengths = {2, 5, 1, 3}});
  same_layer({.steps = 5, .batch = 4, .input = 3, .hidden = 4, .directions = 2, .lengths = {2, 5, 1, 3}});
  same_layer({.steps = 5,
              .batch = 4,
              .input = 3,
              .hidden = 4,
              .directions = 2,
              .h0 = false,
              .lengths = {3, 3, 3, 3}});
  same_layer({.steps = 4, .batch = 3, .input = 2, .hidden = 3, .directions = 2, .lengths = {4, 4, 4}});
  same_layer({.steps = 4, .batch = 3, .input = 2, .hidden = 3, .directions = 2, .lengths = {0, 4, 2}});
  same_layer({.steps = 3, .batch = 2, .input = 2, .hidden = 3, .lengths = {0, 0}});
}

TEST_CASE("gru: the op equals its definition when it is shared out to threads") {
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = 0; b < 40; ++b) lengths.push_back(1 + b * 7 % 30);
  same_layer({.steps = 30, .batch = 40, .input = 20, .hidden = 40});
  same_layer({.steps = 30, .batch = 40, .input = 20, .hidden = 40, .directions = 2, .lengths = lengths});
}

TEST_CASE("gru: the op equals its definition for batches and sequences of no size") {
  same_layer({.steps = 0, .batch = 2, .input = 3, .hidden = 4});
  same_layer({.steps = 3, .batch = 0, .input = 3, .hidden = 4, .directions = 2});
  same_layer({.steps = 2, .batch = 2, .input = 0, .hidden = 3});
}

namespace {

void check_layer(const std::string& file, const std::string& prefix, nn::GRUOptions options) {
  CAPTURE(prefix);
  options.input_size = 5;
  options.hidden_size = 6;
  Rng rng(1);
  nn::GRU gru(options, rng);
  const Reference want(file, prefix);
  want.load_into(gru);
  const Tensor x = want.input("input"), h0 = want.input("h_0");
  const auto [output, h_n] = gru(x, {.h0 = h0, .lengths = want("in.lengths")});
  want.check_equal(output, "out.output");
  want.check_equal(h_n, "out.h_n");
  const Tensors roots{output, h_n}, gradients{want("gout.output"), want("gout.h_n")};
  backward(roots, gradients);
  want.check_gradient(x, "input");
  if (h0.defined()) want.check_gradient(h0, "h_0");
  want.check_gradients(gru);
}

}  // namespace

TEST_CASE("gru: layers give the reference values") {
  check_layer("gru_layer.safetensors", "l1", {});
  check_layer("gru_layer.safetensors", "l1_no_bias_h0", {.bias = false});
  check_layer("gru_layer.safetensors", "l2_h0", {.num_layers = 2});
  check_layer("gru_layer.safetensors", "l2_batch_first_h0", {.num_layers = 2, .batch_first = true});
  check_layer("gru_bidirectional.safetensors", "bi_l2_h0", {.num_layers = 2, .bidirectional = true});
  check_layer("gru_bidirectional.safetensors", "bi_l1_batch_first_h0",
              {.batch_first = true, .bidirectional = true});
  check_layer("gru_packed.safetensors", "l1_unsorted_h0", {});
  check_layer("gru_packed.safetensors", "l2_batch_first_h0", {.num_layers = 2, .batch_first = true});
  check_layer("gru_packed.safetensors", "bi_l2_unsorted_h0", {.num_layers = 2, .bidirectional = true});
}

TEST_CASE("gru: a cell gives the reference values") {
  for (const bool bias : {true, false}) {
    Rng rng(1);
    nn::GRUCell cell({.input_size = 5, .hidden_size = 6, .bias = bias}, rng);
    const Reference want("gru_cell.safetensors", bias ? "bias" : "no_bias");
    want.load_into(cell);
    const Tensor x = want.input("x"), h = want.input("h_prev");
    const Tensor next = cell(x, h);
    want.check_equal(next, "out.h");
    next.backward(want("gout.h"));
    want.check_gradient(x, "x");
    want.check_gradient(h, "h_prev");
    want.check_gradients(cell);
  }
}

TEST_CASE("gru: ragged lengths equal separate sequences") {
  Rng rng(3);
  const nn::GRU gru({.input_size = 4, .hidden_size = 5, .num_layers = 2, .bidirectional = true}, rng);
  const Tensor x = random({6, 3, 4}, 7);
  const std::vector<std::int64_t> lengths{2, 6, 3};
  const auto [output, h_n] = gru(x, {.lengths = tensor(lengths, {3})});
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::int64_t n = lengths[static_cast<std::size_t>(b)];
    const auto alone = gru(x.narrow(1, b, 1).narrow(0, 0, n));
    CHECK(largest_difference(output.narrow(1, b, 1).narrow(0, 0, n), alone.output) < 1e-6);
    CHECK(largest_difference(h_n.narrow(1, b, 1), alone.h_n) < 1e-6);
    const auto padding = output.narrow(1, b, 1).narrow(0, n, 6 - n).to_vector();
    CHECK(std::all_of(padding.begin(), padding.end(), [](double v) { return v == 0; }));
  }
}

TEST_CASE("gru: what lies past the lengths changes nothing, not even when it is not a number") {
  Rng rng(3);
  const nn::GRU gru({.input_size = 4, .hidden_size = 5, .bidirectional = true}, rng);
  const Tensor lengths = tensor<std::int64_t>({2, 4, 0});
  Tensor x = random({4, 3, 4}, 7), junk = x.clone();
  junk.narrow(0, 2, 2).select(1, 0).fill_(std::numeric_limits<double>::quiet_NaN());
  junk.select(1, 2).fill_(std::numeric_limits<double>::infinity());
  junk.set_requires_grad();
  const auto [output, h_n] = gru(junk, {.lengths = lengths});
  CHECK(largest_difference(output, gru(x, {.lengths = lengths}).output) == 0);
  sum(output).backward();
  CHECK(test::all_finite(junk.grad()));
  CHECK(sum(abs(junk.grad().select(1, 2))).item() == 0);
  CHECK(sum(abs(junk.grad().narrow(0, 2, 2).select(1, 0))).item() == 0);
}

TEST_CASE("gru: a sequence without steps keeps its first state") {
  Rng rng(3);
  const nn::GRU gru({.input_size = 2, .hidden_size = 3}, rng);
  const Tensor h0 = random({1, 2, 3}, 1);
  const auto some = gru(random({4, 2, 2}, 2), {.h0 = h0, .lengths = tensor<std::int64_t>({0, 4})});
  CHECK(largest_difference(some.h_n.select(1, 0), h0.select(1, 0)) == 0);
  CHECK(sum(abs(some.output.select(1, 0))).item() == 0);
  const auto none = gru(zeros({0, 2, 2}), {.h0 = h0});
  CHECK(none.output.shape() == Shape{0, 2, 3});
  CHECK(largest_difference(none.h_n, h0) == 0);
}

TEST_CASE("gru: batch first is the same with the first two dimensions exchanged") {
  Rng one(3), two(3);
  const nn::GRU time_first({.input_size = 4, .hidden_size = 5, .num_layers = 2}, one);
  const nn::GRU batch_first({.input_size = 4, .hidden_size = 5, .num_layers = 2, .batch_first = true}, two);
  const Tensor x = random({6, 3, 4}, 7);
  const auto a = time_first(x), b = batch_first(x.transpose(0, 1).contiguous());
  CHECK(b.output.shape() == Shape{3, 6, 5});
  CHECK(largest_difference(a.output.transpose(0, 1), b.output) == 0);
  CHECK(largest_difference(a.h_n, b.h_n) == 0);
}

TEST_CASE("gru: a kept graph gives the same gradients again") {
  Rng rng(3);
  const nn::GRU gru({.input_size = 4, .hidden_size = 5}, rng);
  const Tensor loss = sum(square(gru(random({6, 3, 4}, 7)).output));
  backward(loss, {.keep = true});
  const Tensor first = gru.parameter("weight_hh_l0").grad().clone();
  gru.parameter("weight_hh_l0").base().zero_grad();
  backward(loss);
  CHECK(largest_difference(first, gru.parameter("weight_hh_l0").grad()) == 0);
}

TEST_CASE("gru: a state or weight changed in place before the gradient is an error") {
  Rng rng(3);
  const nn::GRU gru({.input_size = 2, .hidden_size = 3}, rng);
  const Tensor x = random({4, 2, 2}, 2);
  SUBCASE("state") {
    const auto out = gru(x);
    out.output.detach().fill_(1);
    check_error([&] { sum(out.output).backward(); }, "changed in place");
  }
  SUBCASE("weight") {
    const auto out = gru(x);
    nn::init::zeros_(gru.parameter("weight_hh_l0"));
    check_error([&] { sum(out.output).backward(); }, "changed in place");
  }
}

TEST_CASE("gru: a changed weight is used at once") {
  Rng rng(3);
  const nn::GRU gru({.input_size = 2, .hidden_size = 3}, rng);
  const Tensor x = random({4, 2, 2}, 2);
  const NoGrad no_grad;
  const Tensor before = gru(x).output.clone();
  gru.parameter("weight_hh_l0").fill_(0.5);
  CHECK(largest_difference(before, gru(x).output) > 1e-3);
}

TEST_CASE("gru: large inputs saturate instead of overflowing") {
  Rng rng(3);
  const nn::GRU gru({.input_size = 2, .hidden_size = 3}, rng);
  Tensor x = full({3, 2, 2}, 1e30);
  x.set_requires_grad();
  const auto out = gru(x);
  sum(out.output).backward();
  CHECK(test::all_finite(out.output));
  CHECK(test::all_finite(x.grad()));
}

TEST_CASE("gru: dropout acts between layers and only while training") {
  const nn::GRUOptions options{.input_size = 4, .hidden_size = 50, .num_layers = 2, .dropout = 0.5};
  Rng rng(3);
  nn::GRU gru(options, rng);
  const Tensor x = random({6, 3, 4}, 7);
  const Tensor a = gru(x).output, b = gru(x).output;
  CHECK(largest_difference(a, b) > 1e-3);
  gru.eval();
  CHECK(largest_difference(gru(x).output, gru(x).output) == 0);

  Rng again(3);
  nn::GRU resumed(options, again);
  CHECK(largest_difference(resumed(x).output, a) == 0);
  CHECK(largest_difference(resumed(x).output, b) == 0);
  gru.train();
  resumed.load_counters(gru.counters());
  CHECK(largest_difference(resumed(x).output, gru(x).output) == 0);
}

TEST_CASE("gru: names and shapes of the parameters are PyTorch's") {
  Rng rng(3);
  const nn::GRU gru({.input_size = 4, .hidden_size = 5, .num_layers = 2, .bidirectional = true}, rng);
  const auto named = gru.named_parameters();
  REQUIRE(named.size() == 16);
  CHECK(named[0].first == "weight_ih_l0");
  CHECK(named[0].second.shape() == Shape{15, 4});
  CHECK(named[1].first == "weight_hh_l0");
  CHECK(named[1].second.shape() == Shape{15, 5});
  CHECK(named[2].first == "bias_ih_l0");
  CHECK(named[3].first == "bias_hh_l0");
  CHECK(named[4].first == "weight_ih_l0_reverse");
  CHECK(named[12].first == "weight_ih_l1_reverse");
  CHECK(named[12].second.shape() == Shape{15, 10});
  CHECK(nn::GRUCell({.input_size = 4, .hidden_size = 5}, rng).parameter("bias_hh").shape() == Shape{15});
  for (const auto& [name, parameter] : named) {
    CHECK(amax(abs(parameter)).item() <= 1 / std::sqrt(5.0));
    CHECK(rill::std(parameter.contiguous()).item() > 0.15);
  }
}

TEST_CASE("gru: what does not fit is an error that names both sides") {
  Rng rng(3);
  const nn::GRU gru({.input_size = 4, .hidden_size = 5}, rng);
  check_error([&] { gru(zeros({2, 4})); }, "gru: the input is [2, 4]; this layer needs [T, B, 4]");
  check_error([&] { gru(zeros({2, 3, 7})); }, "gru: the input is [2, 3, 7]; this layer needs [T, B, 4]");
  check_error(
      [&] {
        gru(zeros({2, 3, 4}), {.h0 = zeros({1, 2, 5})});
      },
      "gru: h0 is [1, 2, 5]; an input of [2, 3, 4] needs [1, 3, 5]");
  check_error(
      [&] {
        gru(zeros({2, 3, 4}), {.lengths = tensor<std::int64_t>({1, 2})});
      },
      "lengths are int64 [2]");
  check_error(
      [&] {
        gru(zeros({2, 3, 4}), {.lengths = tensor<std::int64_t>({1, 3, 2})});
      },
      "length 3 of sequence 1 is outside 0..2");
  check_error(
      [&] {
        gru(zeros({2, 3, 4}), {.lengths = tensor<std::int64_t>({1, -1, 2})});
      },
      "length -1 of sequence 1 is outside 0..2");
  check_error(
      [&] {
        gru(zeros({2, 3, 4}, float64));
      },
      "dtypes float64 (input) and float32 (input weight) differ");
  check_error([&] { gru(zeros({2, 3, 4}, int64)); }, "gru: the input is int64");
  check_error([&] { nn::GRU({.input_size = 0, .hidden_size = 5}, rng); }, "input_size 0");
  check_error([&] { nn::GRU({.input_size = 2, .hidden_size = 5, .dropout = 1.5}, rng); },
              "p 1.5 is outside 0..1");
  const nn::GRUCell cell({.input_size = 4, .hidden_size = 5}, rng);
  check_error([&] { cell(zeros({3, 2})); }, "gru: the input is [3, 2]; a cell needs [B, 4]");
  check_error(
      [&] {
        cell(zeros({3, 4}), zeros({2, 5}));
      },
      "gru: the state is [2, 5]; an input of [3, 4] needs [3, 5]");
  nn::GruWeights wrong = cell.weights();
  wrong.hh = zeros({5, 12});
  check_error(
      [&] {
        nn::gru_sequence(zeros({2, 3, 4}), std::span(&wrong, 1));
      },
      "gru: the hidden weight is [5, 12]; 5 hidden need [5, 15]");
  check_error([&] { nn::gru_sequence(zeros({2, 3, 4}), {}); }, "gru: 0 directions");
}
