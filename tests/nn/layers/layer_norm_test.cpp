#include <doctest/doctest.h>

#include <rill/core/core.h>
#include <rill/nn/layers/layer_norm.h>
#include <support/expect.h>

using namespace rill;
using test::check_error;

TEST_CASE("layer norm: parameters are initialised to ones and zeros, and are optional") {
  Rng rng(1);
  const nn::LayerNorm layer({.normalized_shape = {2, 3}}, rng);
  CHECK(layer.parameter("weight").to_vector() == std::vector<double>(6, 1));
  CHECK(layer.parameter("bias").to_vector() == std::vector<double>(6, 0));
  CHECK(nn::LayerNorm({.normalized_shape = {3}, .bias = false}, rng).named_parameters().size() == 1);
  CHECK(
      nn::LayerNorm({.normalized_shape = {3}, .elementwise_affine = false}, rng).named_parameters().empty());
}

TEST_CASE("layer norm: invalid inputs and options are errors") {
  Rng rng(1);
  check_error([&] { nn::LayerNorm({}, rng); }, "LayerNorm: normalized_shape [] needs");
  check_error([&] { nn::LayerNorm({.normalized_shape = {0}}, rng); },
              "LayerNorm: normalized_shape [0] needs");
  check_error([&] { nn::LayerNorm({.normalized_shape = {3}, .eps = 0}, rng); }, "eps 0 must be positive");
  const nn::LayerNorm layer({.normalized_shape = {3}}, rng);
  check_error([&] { layer(ones({2, 4})); }, "layer_norm");
}
