#include <doctest/doctest.h>

#include <cmath>

#include <rill/core/core.h>
#include <rill/nn/recurrent/lstm.h>
#include <support/expect.h>
#include <support/reference.h>

using namespace rill;

TEST_CASE("lstm: parameters have PyTorch's names and shapes") {
  Rng rng(3);
  const nn::LSTM lstm({.input_size = 4, .hidden_size = 5, .num_layers = 2, .bidirectional = true}, rng);
  const auto named = lstm.named_parameters();
  REQUIRE(named.size() == 16);
  CHECK(named[0].first == "weight_ih_l0");
  CHECK(named[0].second.shape() == Shape{20, 4});
  CHECK(named[1].first == "weight_hh_l0");
  CHECK(named[1].second.shape() == Shape{20, 5});
  CHECK(named[2].first == "bias_ih_l0");
  CHECK(named[3].first == "bias_hh_l0");
  CHECK(named[4].first == "weight_ih_l0_reverse");
  CHECK(named[12].first == "weight_ih_l1_reverse");
  CHECK(named[12].second.shape() == Shape{20, 10});
  CHECK(nn::LSTMCell({.input_size = 4, .hidden_size = 5}, rng).parameter("bias_hh").shape() == Shape{20});
  for (const auto& [name, parameter] : named) CHECK(amax(abs(parameter)).item() <= 1 / std::sqrt(5.0));
}

TEST_CASE("lstm: layers give the reference values") {
  Rng rng(1);
  nn::LSTM lstm({.input_size = 5, .hidden_size = 6, .num_layers = 2, .batch_first = true}, rng);
  const test::Reference want("lstm_packed.safetensors", "l2_batch_first_h0");
  want.load_into(lstm);
  const auto [output, last] =
      lstm(want("in.input"), {.state = {want("in.h_0"), want("in.c_0")}, .lengths = want("in.lengths")});
  want.check_equal(output, "out.output");
  want.check_equal(last.h, "out.h_n");
  want.check_equal(last.c, "out.c_n");
}

TEST_CASE("lstm: a cell carries h and c from step to step") {
  Rng rng(2);
  const nn::LSTMOptions options{.input_size = 3, .hidden_size = 4};
  const nn::LSTM layer(options, rng);
  nn::LSTMCell cell({.input_size = 3, .hidden_size = 4}, rng);
  const NoGrad no_grad;
  for (const char* name : {"weight_ih", "weight_hh", "bias_ih", "bias_hh"})
    cell.parameter(name).copy_(layer.parameter(std::string(name) + "_l0"));
  const Tensor x = randn({5, 2, 3}, rng);
  nn::RecurrentState state;
  for (std::int64_t t = 0; t < 5; ++t) state = cell(x.select(0, t), state);
  const auto [output, last] = layer(x);
  CHECK(test::largest_difference(state.h, last.h.squeeze(0)) < 1e-6);
  CHECK(test::largest_difference(state.c, last.c.squeeze(0)) < 1e-6);
  CHECK(test::largest_difference(state.h, output.select(0, 4)) < 1e-6);
}
