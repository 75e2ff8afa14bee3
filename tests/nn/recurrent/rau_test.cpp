#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include <rill/core/core.h>
#include <rill/nn/recurrent/rau.h>
#include <support/expect.h>

namespace {

using namespace rill;
using test::largest_difference;

Tensor random(const Shape& shape, std::uint64_t seed) {
  Rng rng(seed);
  return randn(shape, rng);
}

}  // namespace

TEST_CASE("rau: shapes of outputs and last states") {
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

TEST_CASE("rau: weights are initialised orthogonal gate by gate, biases to zero") {
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

TEST_CASE("rau: parameter names and shapes") {
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
