#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include <rill/core/core.h>
#include <rill/nn/recurrent/gru.h>
#include <support/reference.h>

namespace {

using namespace rill;
using test::Reference;
using Tensors = std::vector<Tensor>;

void check_layer(const std::string& prefix, nn::GRUOptions options) {
  CAPTURE(prefix);
  options.input_size = 5;
  options.hidden_size = 6;
  Rng rng(1);
  nn::GRU gru(options, rng);
  const Reference want("gru_packed.safetensors", prefix);
  want.load_into(gru);
  const Tensor x = want.input("input"), h0 = want.input("h_0");
  const auto [output, h_n] = gru(x, {.h0 = h0, .lengths = want("in.lengths")});
  want.check_equal(output, "out.output");
  want.check_equal(h_n, "out.h_n");
  const Tensors roots{output, h_n}, gradients{want("gout.output"), want("gout.h_n")};
  backward(roots, gradients);
  want.check_gradient(x, "input");
  want.check_gradient(h0, "h_0");
  want.check_gradients(gru);
}

}  // namespace

TEST_CASE("gru: layers give the reference values") {
  check_layer("l2_batch_first_h0", {.num_layers = 2, .batch_first = true});
  check_layer("bi_l2_unsorted_h0", {.num_layers = 2, .bidirectional = true});
}

TEST_CASE("gru: parameters have PyTorch's names and shapes") {
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
    CHECK(rill::stddev(parameter.contiguous()).item() > 0.15);
  }
}
