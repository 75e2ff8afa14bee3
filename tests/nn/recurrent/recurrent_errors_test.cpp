// Errors common to all units.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nn/recurrent/units.h>
#include <rill/core/core.h>
#include <support/expect.h>

using namespace test;

TEST_CASE_TEMPLATE("recurrent: mismatched inputs are errors that name both sides", Unit, Gru, Lstm, Rau) {
  const auto layer = small_layer<Unit>();
  const auto run = [&](const Shape& shape, const nn::RecurrentInputs& given = {}, DType dtype = float32) {
    return [&layer, shape, given, dtype] { layer(zeros(shape, dtype), given); };
  };
  check_error(run({2, 4}),
              std::string(name(Unit::cell)) + ": the input is [2, 4]; this layer needs [T, B, 4]");
  check_error(run({2, 3, 7}), "the input is [2, 3, 7]; this layer needs [T, B, 4]");
  check_error(run({2, 3, 4}, {.state = zeros({1, 2, 5})}),
              "h0 is [1, 2, 5]; an input of [2, 3, 4] needs [1, 3, 5]");
  const nn::RecurrentState wrong_c(zeros({1, 3, 5}), zeros({1, 3, 6}));
  check_error(run({2, 3, 4}, {.state = wrong_c}), "c0 is [1, 3, 6]; an input of [2, 3, 4] needs [1, 3, 5]");
  check_error(run({2, 3, 4}, {.lengths = tensor<std::int64_t>({1, 2})}), "lengths are int64 [2]");
  check_error(run({2, 3, 4}, {.lengths = tensor<std::int64_t>({1, 3, 2})}),
              "length 3 of sequence 1 is outside 0..2");
  check_error(run({2, 3, 4}, {.lengths = tensor<std::int64_t>({1, -1, 2})}),
              "length -1 of sequence 1 is outside 0..2");
  check_error(run({2, 3, 4}, {}, float64), "dtypes float64 (input) and float32 (input weight) differ");
  check_error(run({2, 3, 4}, {}, int64), "the input is int64");
}

TEST_CASE_TEMPLATE("recurrent: mismatched weights are errors that name both sides", Unit, Gru, Lstm, Rau) {
  const auto layer = small_layer<Unit>();
  const auto run = [&](auto change) {
    return [&layer, change] {
      nn::RecurrentWeights w = layer.weights(0)[0];
      change(w);
      nn::recurrent_sequence(Unit::cell, zeros({2, 3, 4}), std::span(&w, 1));
    };
  };
  const nn::detail::Unit& unit = nn::detail::unit_of(Unit::cell);
  check_error(run([](nn::RecurrentWeights& w) {
                w.hh = zeros({5, 12});
              }),
              fmt::format("the hidden weight is [5, 12]; 5 hidden need [5, {}]", 5 * unit.gates));
  check_error(run([](nn::RecurrentWeights& w) { w.ih = Tensor(); }), "the weights must be matrices");
  check_error(run([](nn::RecurrentWeights& w) {
                w.hh = zeros({1, 1}).expand({std::int64_t{1} << 60, 1});
              }),
              "it must be in 1..268435456");
  check_error(run([](nn::RecurrentWeights& w) { w.bias_ih = zeros({3}); }),
              "the input bias is [3]; it needs");
  check_error(run([](nn::RecurrentWeights& w) { w.bias_hh = zeros({3}); }),
              unit.biases == 2 ? "the hidden bias is [3]; it needs" : "the unit has one bias");
  check_error(run([&](nn::RecurrentWeights& w) {
                w.inner = unit.has_inner() ? zeros({5, 4}) : zeros({5, 5});
              }),
              unit.has_inner() ? "the inner weight is [5, 4]; it needs [5, 5]"
                               : "the inner weight is not part of this unit");
  if (unit.has_inner())
    check_error(run([](nn::RecurrentWeights& w) { w.inner = Tensor(); }), "the inner weight is missing");
  const std::span<const nn::RecurrentWeights> none;
  const char* const no_directions = "0 directions; there are 1 or 2";
  check_error([&] { nn::recurrent_sequence(Unit::cell, zeros({2, 3, 4}), none); }, no_directions);
  check_error([&] { nn::reference::recurrent_sequence(Unit::cell, zeros({2, 3, 4}), none); }, no_directions);
  if (unit.states == 2) return;
  const nn::RecurrentState with_c(zeros({1, 3, 5}), zeros({1, 3, 5}));
  check_error([&] { layer(zeros({2, 3, 4}), {.state = with_c}); }, "the unit has no cell state; leave c out");
}

TEST_CASE_TEMPLATE("recurrent: options out of range are errors that name the option", Unit, Gru, Lstm, Rau) {
  using Options = nn::RecurrentLayersOptions;
  const auto run = [](const Options& options) { return [options] { make_layers<Unit>(options); }; };
  check_error(run({.input_size = 0, .hidden_size = 5}),
              "input_size 0 and hidden_size 5 must be in 1..268435456");
  const std::int64_t huge = std::int64_t{1} << 62;  // 3 · 2^62 overflows
  check_error(run({.input_size = 3, .hidden_size = huge}), "hidden_size 4611686018427387904 must be in 1..");
  check_error(run({.input_size = huge, .hidden_size = 3}), "input_size 4611686018427387904 and");
  check_error(run({.input_size = 2, .hidden_size = 5, .num_layers = 0}), "num_layers 0 must be in 1..65536");
  check_error(run({.input_size = 2, .hidden_size = 5, .num_layers = std::int64_t{1} << 62}),
              "must be in 1..65536");
  check_error(run({.input_size = 2, .hidden_size = 5, .dropout = 1.5}), "dropout 1.5 is outside 0..1");
}

TEST_CASE_TEMPLATE("recurrent: using a moved-from module is an error", Unit, Gru, Lstm, Rau) {
  auto layer = small_layer<Unit>();
  const auto taken = std::move(layer);
  CHECK(taken(zeros({2, 3, 4})).output.shape() == Shape{2, 3, 5});
  check_error([&] { layer(zeros({2, 3, 4})); }, "the module was moved from; it has no weights");
  check_error([&] { layer.weights(0); }, "the module was moved from; it has no weights");
}

TEST_CASE("recurrent: cells reject mismatched inputs") {
  Rng rng(3);
  nn::GRUCell cell({.input_size = 4, .hidden_size = 5}, rng);
  check_error([&] { cell(zeros({3, 2})); }, "gru: the input is [3, 2]; a cell needs [B, 4]");
  check_error([&] { cell(zeros({3, 4}), zeros({2, 5})); }, "h0 is [2, 5]; an input of [3, 4] needs [3, 5]");
  check_error([&] { nn::GRUCell({.input_size = 3, .hidden_size = 0}, rng); },
              "GRUCell: input_size 3 and hidden_size 0 must be in");
  const nn::GRUCell taken = std::move(cell);
  check_error([&] { cell(zeros({3, 4})); }, "gru: the module was moved from; it has no weights");
}
