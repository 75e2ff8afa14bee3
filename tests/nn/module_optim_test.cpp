#include <doctest/doctest.h>

#include <vector>

#include <rill/core/core.h>
#include <rill/nn/layers/linear.h>
#include <rill/nn/recurrent/rau.h>
#include <rill/optim/optim.h>
#include <support/expect.h>

using namespace rill;
using test::largest_difference;

TEST_CASE("module: an optimiser from before a conversion names the parameter instead of stepping") {
  Rng rng(1);
  nn::Linear layer({.in_features = 100, .out_features = 100}, rng);
  optim::Adam adam(layer.parameters());
  layer.to(float64);
  sum(layer(ones({1, 100}, float64))).backward();
  const char* message =
      "Adam: parameter 'weight' is float64 [100, 100] now and was float32 [100, 100] when the optimiser was "
      "made; make the optimiser after to()";
  CHECK_THROWS_WITH_AS(adam.step(), message, Error);
  CHECK_THROWS_WITH_AS(adam.step_clipped(1), message, Error);
  optim::Adam after(layer.parameters());
  after.step();
  CHECK(after.state()[3].first == "weight.exp_avg");
}

TEST_CASE("module: an optimiser accepts named parameters and steps each leaf once") {
  Rng rng(1);
  const nn::RAUCell cell({.input_size = 3, .hidden_size = 2}, rng);
  optim::SGD sgd(cell.named_parameters(), {.lr = 1});
  sum(cell(ones({1, 3}))).backward();
  const Tensor before = cell.parameter("weight_xz").detach().clone(), gradient = cell.grad("weight_xz");
  CHECK(optim::grad_norm(cell.named_parameters()) == optim::grad_norm(cell.parameters()));
  sgd.step();
  CHECK(largest_difference(before - cell.parameter("weight_xz").detach(), gradient) < 1e-6);
  CHECK(sgd.state().size() == 2 + cell.parameters().size());
}
