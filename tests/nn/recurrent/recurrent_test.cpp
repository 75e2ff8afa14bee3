// Cases common to all units.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <nn/recurrent/units.h>
#include <rill/core/core.h>
#include <rill/nn/init.h>
#include <rill/nn/recurrent/recurrent.h>
#include <support/expect.h>
#include <support/gradcheck_table.h>
#include <support/same.h>

namespace {

using namespace test;
using test::check_error;
using test::largest_difference;
using test::same;
using Tensors = std::vector<Tensor>;

/// The sizes and inputs of a layer.
struct Layer {
  std::int64_t steps, batch, input, hidden;
  std::int64_t directions = 1;
  bool bias = true;
  bool h0 = true;
  std::vector<std::int64_t> lengths = {};
};

/// The inputs of a sequence as a list: x, h0, c0, then five weights per direction (undefined where the unit
/// has none), small enough that rounding errors do not grow over many steps.
Tensors inputs_of(nn::Cell cell, const Layer& l) {
  const nn::detail::Unit& unit = nn::detail::unit_of(cell);
  std::uint64_t seed = 1;
  const double bound = 1.5 / std::sqrt(static_cast<double>(l.hidden));
  const auto next = [&](const Shape& shape, bool wanted = true) {
    return wanted ? test::input_between(shape, -bound, bound, seed++) : Tensor();
  };
  const Shape states{l.directions, l.batch, l.hidden};
  const std::int64_t width = unit.gates * l.hidden;
  Tensors in{next({l.steps, l.batch, l.input}), next(states, l.h0), next(states, l.h0 && unit.states == 2)};
  for (std::int64_t d = 0; d < l.directions; ++d) {
    in.push_back(next({l.input, width}));
    in.push_back(next({l.hidden, width}));
    in.push_back(next({width}, l.bias));
    in.push_back(next({width}, l.bias && unit.biases == 2));
    in.push_back(next({l.hidden, l.hidden}, unit.has_inner()));
  }
  return in;
}

using Sequence = nn::RecurrentOutput (*)(nn::Cell, const Tensor&, std::span<const nn::RecurrentWeights>,
                                         const nn::RecurrentInputs&);

/// f as a function of that list.
GradcheckFunction layer_function(nn::Cell cell, const Layer& l, Sequence f) {
  const Tensor lengths = l.lengths.empty() ? Tensor() : tensor(l.lengths, {l.batch});
  return [cell, f, lengths](const Tensors& in) {
    std::vector<nn::RecurrentWeights> w;
    for (std::size_t i = 3; i < in.size(); i += 5)
      w.push_back({in[i], in[i + 1], in[i + 2], in[i + 3], in[i + 4]});
    const auto [output, last] = f(cell, in[0], w, {.state = {in[1], in[2]}, .lengths = lengths});
    return last.c.defined() ? Tensors{output, last.h, last.c} : Tensors{output, last.h};
  };
}

template <class Unit>
void same_layer(const Layer& l) {
  same(layer_function(Unit::cell, l, nn::recurrent_sequence),
       layer_function(Unit::cell, l, nn::reference::recurrent_sequence), inputs_of(Unit::cell, l));
}

template <class F>
void for_each_state(const nn::RecurrentState& a, const nn::RecurrentState& b, F&& f) {
  f(a.h, b.h);
  REQUIRE(a.c.defined() == b.c.defined());
  if (a.c.defined()) f(a.c, b.c);
}

}  // namespace

TEST_CASE_TEMPLATE("recurrent: the op equals its definition for one step, one sequence and many", Unit, Gru,
                   Lstm, Rau) {
  same_layer<Unit>({.steps = 1, .batch = 3, .input = 4, .hidden = 5});
  same_layer<Unit>({.steps = 6, .batch = 1, .input = 3, .hidden = 4});
  same_layer<Unit>({.steps = 4, .batch = 3, .input = 2, .hidden = 7});
  same_layer<Unit>({.steps = 3, .batch = 2, .input = 5, .hidden = 1});
}

TEST_CASE_TEMPLATE("recurrent: the op equals its definition without biases and initial states", Unit, Gru,
                   Lstm, Rau) {
  same_layer<Unit>({.steps = 4, .batch = 3, .input = 2, .hidden = 5, .bias = false});
  same_layer<Unit>({.steps = 4, .batch = 3, .input = 2, .hidden = 5, .h0 = false});
  same_layer<Unit>({.steps = 1, .batch = 2, .input = 2, .hidden = 3, .bias = false, .h0 = false});
}

TEST_CASE_TEMPLATE("recurrent: the op equals its definition in both directions", Unit, Gru, Lstm, Rau) {
  same_layer<Unit>({.steps = 5, .batch = 3, .input = 4, .hidden = 3, .directions = 2});
  same_layer<Unit>({.steps = 1, .batch = 2, .input = 4, .hidden = 3, .directions = 2, .h0 = false});
}

TEST_CASE_TEMPLATE("recurrent: the op equals its definition for ragged batches in any order", Unit, Gru, Lstm,
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

TEST_CASE_TEMPLATE("recurrent: the op equals its definition when the batch is split over threads", Unit, Gru,
                   Lstm, Rau) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = 0; b < 40; ++b) lengths.push_back(1 + b * 7 % 30);
  same_layer<Unit>({.steps = 30, .batch = 40, .input = 20, .hidden = 40});
  same_layer<Unit>(
      {.steps = 30, .batch = 40, .input = 20, .hidden = 40, .directions = 2, .lengths = lengths});
}

TEST_CASE_TEMPLATE("recurrent: the op equals its definition for empty batches, sequences and inputs", Unit,
                   Gru, Lstm, Rau) {
  same_layer<Unit>({.steps = 0, .batch = 2, .input = 3, .hidden = 4});
  same_layer<Unit>({.steps = 3, .batch = 0, .input = 3, .hidden = 4, .directions = 2});
  same_layer<Unit>({.steps = 2, .batch = 2, .input = 0, .hidden = 3});
}

TEST_CASE_TEMPLATE("recurrent: ragged lengths equal separate sequences", Unit, Gru, Lstm, Rau) {
  const auto layers =
      make_layers<Unit>({.input_size = 4, .hidden_size = 5, .num_layers = 2, .bidirectional = true});
  const Tensor x = random({6, 3, 4}, 7);
  const std::vector<std::int64_t> lengths{2, 6, 3};
  const auto [output, last] = layers(x, {.lengths = tensor(lengths, {3})});
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::int64_t n = lengths[static_cast<std::size_t>(b)];
    const auto alone = layers(x.narrow(1, b, 1).narrow(0, 0, n));
    CHECK(largest_difference(output.narrow(1, b, 1).narrow(0, 0, n), alone.output) < 1e-6);
    for_each_state(last, alone.last, [&](const Tensor& together, const Tensor& one) {
      CHECK(largest_difference(together.narrow(1, b, 1), one) < 1e-6);
    });
    const auto padding = output.narrow(1, b, 1).narrow(0, n, 6 - n).to_vector();
    CHECK(std::all_of(padding.begin(), padding.end(), [](double v) { return v == 0; }));
  }
}

TEST_CASE_TEMPLATE("recurrent: padding has no effect, not even NaN", Unit, Gru, Lstm, Rau) {
  const auto layer = make_layers<Unit>({.input_size = 4, .hidden_size = 5, .bidirectional = true});
  const Tensor lengths = tensor<std::int64_t>({2, 4, 0});
  const Tensor x = random({4, 3, 4}, 7);
  Tensor junk = x.clone();
  junk.narrow(0, 2, 2).select(1, 0).fill_(std::numeric_limits<double>::quiet_NaN());
  junk.select(1, 2).fill_(std::numeric_limits<double>::infinity());
  junk.set_requires_grad();
  const auto [output, last] = layer(junk, {.lengths = lengths});
  CHECK(largest_difference(output, layer(x, {.lengths = lengths}).output) == 0);
  sum(output).backward();
  CHECK(test::all_finite(junk.grad()));
  CHECK(sum(abs(junk.grad().select(1, 2))).item() == 0);
  CHECK(sum(abs(junk.grad().narrow(0, 2, 2).select(1, 0))).item() == 0);
}

TEST_CASE_TEMPLATE("recurrent: a sequence without steps keeps its initial state", Unit, Gru, Lstm, Rau) {
  const auto layer = small_layer<Unit>(2, 3);
  const nn::RecurrentState initial = random_state<Unit>({1, 2, 3});
  const auto some = layer(random({4, 2, 2}, 2), {.state = initial, .lengths = tensor<std::int64_t>({0, 4})});
  CHECK(sum(abs(some.output.select(1, 0))).item() == 0);
  for_each_state(some.last, initial, [](const Tensor& last, const Tensor& first) {
    CHECK(largest_difference(last.select(1, 0), first.select(1, 0)) == 0);
  });
  const auto none = layer(zeros({0, 2, 2}), {.state = initial});
  CHECK(none.output.shape() == Shape{0, 2, 3});
  for_each_state(none.last, initial, [](const Tensor& last, const Tensor& first) {
    CHECK(largest_difference(last, first) == 0);
  });
}

TEST_CASE_TEMPLATE("recurrent: batch_first exchanges the first two dimensions", Unit, Gru, Lstm, Rau) {
  const auto time_first = make_layers<Unit>({.input_size = 4, .hidden_size = 5, .num_layers = 2}),
             batch_first =
                 make_layers<Unit>({.input_size = 4, .hidden_size = 5, .num_layers = 2, .batch_first = true});
  const Tensor x = random({6, 3, 4}, 7);
  const auto a = time_first(x), b = batch_first(x.transpose(0, 1).contiguous());
  CHECK(b.output.shape() == Shape{3, 6, 5});
  CHECK(largest_difference(a.output.transpose(0, 1), b.output) == 0);
  for_each_state(a.last, b.last,
                 [](const Tensor& p, const Tensor& q) { CHECK(largest_difference(p, q) == 0); });
}

TEST_CASE_TEMPLATE("recurrent: rows of a state are selected by sequence", Unit, Gru, Lstm, Rau) {
  const nn::RecurrentState state = random_state<Unit>({2, 3, 4});
  const nn::RecurrentState picked = state.rows(tensor<std::int64_t>({2, 0, 2, 2}));
  CHECK(state.batch() == 3);
  CHECK(picked.batch() == 4);
  for_each_state(picked, state, [](const Tensor& p, const Tensor& q) {
    CHECK(largest_difference(p.select(1, 1), q.select(1, 0)) == 0);
    CHECK(largest_difference(p.select(1, 3), q.select(1, 2)) == 0);
  });
}

TEST_CASE_TEMPLATE("recurrent: a kept graph gives the same gradients again", Unit, Gru, Lstm, Rau) {
  const auto layer = small_layer<Unit>();
  const Tensor loss = sum(square(layer(random({6, 3, 4}, 7)).output));
  std::vector<Tensor> first;
  backward(loss, {.retain_graph = true});
  for (const Tensor& p : layer.parameters()) {
    first.push_back(p.grad().clone());
    Tensor(p).zero_grad();
  }
  backward(loss);
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(largest_difference(first[i], layer.parameters()[i].grad()) == 0);
  }
}

TEST_CASE_TEMPLATE("recurrent: changing a state or weight in place before backward is an error", Unit, Gru,
                   Lstm, Rau) {
  const auto layer = small_layer<Unit>(2, 3);
  const auto out = layer(random({4, 2, 2}, 2));
  SUBCASE("state") { out.output.detach().fill_(1); }
  SUBCASE("weight") { nn::init::zeros_(layer.parameter(Unit::weight)); }
  check_error([&] { sum(out.output).backward(); }, "changed in place");
}

TEST_CASE_TEMPLATE("recurrent: a changed weight takes effect immediately", Unit, Gru, Lstm, Rau) {
  const auto layer = small_layer<Unit>(2, 3);
  const Tensor x = random({4, 2, 2}, 2);
  const NoGrad no_grad;
  const Tensor before = layer(x).output.clone();
  layer.parameter(Unit::weight).fill_(3);
  CHECK(largest_difference(before, layer(x).output) > 1e-3);
}

TEST_CASE_TEMPLATE("recurrent: large inputs saturate instead of overflowing", Unit, Gru, Lstm, Rau) {
  const auto layer = small_layer<Unit>(2, 3);
  Tensor x = full({3, 2, 2}, 1e30);
  x.set_requires_grad();
  const auto out = layer(x);
  sum(out.output).backward();
  CHECK(test::all_finite(out.output));
  CHECK(test::all_finite(x.grad()));
}

TEST_CASE_TEMPLATE("recurrent: dropout acts between layers and only in training", Unit, Gru, Lstm, Rau) {
  const nn::RecurrentLayersOptions options{
      .input_size = 4, .hidden_size = 50, .num_layers = 2, .dropout = 0.5};
  auto layers = make_layers<Unit>(options);
  const Tensor x = random({6, 3, 4}, 7);
  const Tensor a = layers(x).output, b = layers(x).output;
  CHECK(largest_difference(a, b) > 1e-3);
  layers.eval();
  CHECK(largest_difference(layers(x).output, layers(x).output) == 0);

  auto resumed = make_layers<Unit>(options);
  CHECK(largest_difference(resumed(x).output, a) == 0);
  CHECK(largest_difference(resumed(x).output, b) == 0);
  layers.train();
  resumed.load_counters(layers.counters());
  CHECK(largest_difference(resumed(x).output, layers(x).output) == 0);
}

TEST_CASE_TEMPLATE("recurrent: a clone has the unit and values of the original", Unit, Gru, Lstm, Rau) {
  const auto layer = small_layer<Unit>();
  const nn::Recurrent copy = nn::clone(layer);
  const Tensor x = random({2, 3, 4}, 7);
  CHECK(largest_difference(layer(x).output, copy(x).output) == 0);
  CHECK(copy.options().cell == Unit::cell);
}

// --- cells

TEST_CASE("recurrent: cells equal one step of the definition") {
  Rng rng(3);
  const nn::GRUCell gru({.input_size = 4, .hidden_size = 5}, rng);
  const nn::LSTMCell lstm({.input_size = 4, .hidden_size = 5}, rng);
  const nn::RAUCell rau({.input_size = 4, .hidden_size = 5}, rng);
  const Tensor x = random({3, 4}, 1), h = random({3, 5}, 2);
  CHECK(largest_difference(gru(x, h), nn::reference::gru_step(x, h, gru.weights())) < 1e-6);
  CHECK(largest_difference(rau(x, h), nn::reference::rau_step(x, h, rau.weights())) < 1e-6);
  CHECK(largest_difference(gru(x), gru(x, zeros({3, 5}))) == 0);
  const nn::RecurrentState state = random_state<Lstm>({3, 5});
  const auto compare = [](const Tensor& p, const Tensor& q) { CHECK(largest_difference(p, q) < 1e-6); };
  for_each_state(lstm(x, state), nn::reference::lstm_step(x, state, lstm.weights()), compare);
  for_each_state(lstm(x, h), lstm(x, {h, zeros({3, 5})}), compare);
}
