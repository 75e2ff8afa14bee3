#include <doctest/doctest.h>

#include <cmath>

#include <rill/core/core.h>
#include <rill/nn/init.h>
#include <rill/nn/layers/embedding.h>
#include <rill/nn/layers/linear.h>
#include <support/expect.h>

using namespace rill;
using test::check_error;
using test::largest_difference;

TEST_CASE("linear: x times the transposed weight plus bias, for inputs of any rank") {
  Rng rng(1);
  const nn::Linear layer({.in_features = 3, .out_features = 2}, rng);
  {
    const NoGrad no_grad;
    layer.weight().copy_(tensor<float>({1, 2, 3, 4, 5, 6}, {2, 3}));
    layer.parameter("bias").fill_(0.5);
  }
  CHECK(layer(tensor<float>({1, 0, -1})).to_vector() == std::vector<double>{-1.5, -1.5});
  CHECK(layer(ones({2, 3})).to_vector() == std::vector<double>{6.5, 15.5, 6.5, 15.5});
  CHECK(layer(ones({2, 4, 3})).shape() == Shape{2, 4, 2});
  CHECK(layer(ones({0, 3})).shape() == Shape{0, 2});
}

TEST_CASE("linear: parameters have PyTorch's names and distribution") {
  Rng rng(1);
  const nn::Linear layer({.in_features = 100, .out_features = 60}, rng);
  const auto named = layer.named_parameters();
  REQUIRE(named.size() == 2);
  CHECK(named[0].first == "weight");
  CHECK(named[0].second.shape() == Shape{60, 100});
  CHECK(named[1].first == "bias");
  CHECK(named[1].second.shape() == Shape{60});
  for (const auto& [name, p] : named) {
    CHECK(amax(abs(p)).item() <= 0.1);
    CHECK(rill::stddev(p.contiguous()).item() == doctest::Approx(0.2 / std::sqrt(12.0)).epsilon(0.2));
  }
  CHECK(layer.num_parameters() == 6060);
  CHECK(nn::Linear({.in_features = 2, .out_features = 2, .bias = false}, rng).named_parameters().size() == 1);
}

TEST_CASE("linear: the gradient of the named weight equals that of the stored array") {
  Rng rng(1);
  const nn::Linear layer({.in_features = 3, .out_features = 2}, rng);
  const Tensor x = randn({4, 3}, rng);
  sum(square(layer(x))).backward();
  CHECK(layer.parameters()[0].shape() == Shape{3, 2});
  CHECK(layer.parameters()[0].grad().is_contiguous());
  CHECK(largest_difference(layer.parameters()[0].grad().t(), layer.weight().grad()) == 0);
  CHECK(amax(abs(layer.weight().grad())).item() > 0);
}

TEST_CASE("linear: a weight may be shared with an embedding") {
  Rng rng(1);
  const nn::Embedding embedding({.num_embeddings = 7, .embedding_dim = 3}, rng);
  nn::Linear layer({.in_features = 3, .out_features = 7}, rng);
  layer.tie_weight(embedding.weight());
  const Tensor x = randn({2, 3}, rng);
  CHECK(largest_difference(layer(x), matmul(x, embedding.weight().t()) + layer.bias()) < 1e-6);
  sum(layer(x)).backward();
  const Tensor once = embedding.weight().grad().clone();
  sum(embedding(tensor<std::int64_t>({0, 0}))).backward();
  CHECK(embedding.weight().grad().select(0, 0).to_vector()[0] == doctest::Approx(once.to_vector()[0] + 2));
  nn::Linear another({.in_features = 3, .out_features = 7}, rng);
  another.tie_weight(nn::Linear({.in_features = 3, .out_features = 7}, rng).weight());
  layer.tie_weight(another.weight());
  CHECK(layer.parameters()[0].ref() == another.parameters()[0].ref());
  CHECK(largest_difference(layer(x) - layer.bias(), another(x) - another.bias()) < 1e-6);
  check_error(
      [&] {
        layer.tie_weight(zeros({3, 7}));
      },
      "tie_weight: the weight is [3, 7], the layer's [7, 3]");
  check_error([&] { layer.tie_weight(embedding.weight() * embedding.weight()); },
              "tie_weight: the weight was computed by 'mul'");
}

TEST_CASE("linear: invalid inputs and options are errors") {
  Rng rng(1);
  const nn::Linear layer({.in_features = 3, .out_features = 2}, rng);
  check_error([&] { layer(ones({2, 4})); }, "linear");
  check_error([&] { layer(ones({2, 3}, float64)); }, "float64");
  check_error([&] { nn::Linear({.in_features = 0, .out_features = 2}, rng); }, "Linear: in_features 0");
  check_error([&] { nn::Linear({.in_features = 3, .out_features = -2}, rng); }, "out_features -2");
}
