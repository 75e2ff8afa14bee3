#include <doctest/doctest.h>

#include <cmath>

#include <rill/core/core.h>
#include <support/same.h>

using rill::Tensor;
using Values = std::vector<double>;

namespace {

Tensor random(const rill::Shape& shape, std::uint64_t seed, rill::DType dtype = rill::float64) {
  rill::Rng rng(seed);
  return rill::randn(shape, rng, dtype);
}

/// (x - mean) / √(var + eps) · weight + bias in plain ops over the last dimension.
Tensor plain(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  const Tensor centered = x - rill::mean(x, {-1}, true);
  const Tensor scaled = centered * rill::rsqrt(rill::mean(rill::square(centered), {-1}, true) + eps);
  return scaled * weight + bias;
}

}  // namespace

TEST_CASE("layer_norm: equals its definition in every layout, on any number of threads") {
  test::same(
      [](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{rill::layer_norm(in[0], {6}, in[1], in[2])};
      },
      [](const std::vector<Tensor>& in) { return std::vector<Tensor>{plain(in[0], in[1], in[2], 1e-5)}; },
      {random({5, 4, 6}, 1).set_requires_grad(), random({6}, 2).set_requires_grad(),
       random({6}, 3).set_requires_grad()});
}

TEST_CASE("layer_norm: many rows give the same bits for any number of threads") {
  const auto result = [] {
    Tensor x = random({3000, 70}, 1, rill::float32).set_requires_grad();
    Tensor weight = random({70}, 2, rill::float32).set_requires_grad();
    Tensor bias = random({70}, 3, rill::float32).set_requires_grad();
    rill::layer_norm(x, {70}, weight, bias).backward(random({3000, 70}, 4, rill::float32));
    Values all = x.grad().to_vector();
    for (const Tensor& p : {weight, bias}) {
      const Values v = p.grad().to_vector();
      all.insert(all.end(), v.begin(), v.end());
    }
    return all;
  };
  const test::Threads one(1);
  const Values serial = result();
  const test::Threads four(4);
  CHECK(result() == serial);
}

TEST_CASE("layer_norm: constant rows, empty tensors and invalid arguments") {
  CHECK(rill::layer_norm(rill::full({2, 3}, 7), {3}).to_vector() == Values{0, 0, 0, 0, 0, 0});
  CHECK(rill::layer_norm(rill::zeros({0, 3}), {3}).shape() == rill::Shape{0, 3});
  CHECK(rill::layer_norm(rill::zeros({2, 0}), {0}).shape() == rill::Shape{2, 0});
  Tensor weight = rill::ones({3}).set_requires_grad();
  rill::backward(rill::sum(rill::layer_norm(rill::zeros({0, 3}), {3}, weight)));
  CHECK(weight.grad().to_vector() == Values{0, 0, 0});
  const Tensor x = rill::zeros({2, 3});
  CHECK_THROWS_WITH(rill::layer_norm(x, {4}), "layer_norm: x of shape [2, 3] does not end with [4]");
  CHECK_THROWS_WITH(rill::layer_norm(x, {}),
                    "layer_norm: normalized_shape [] does not fit x of shape [2, 3]");
  CHECK_THROWS_WITH(rill::layer_norm(x, {3}, rill::ones({2})), "layer_norm: the weight is [2], not [3]");
  CHECK_THROWS_WITH(rill::layer_norm(x, {3}, Tensor(), rill::ones({3}, rill::float64)),
                    "layer_norm: the bias is float64, x is float32; use .to(float32)");
  CHECK_THROWS_AS(rill::layer_norm(x, {3}, Tensor(), Tensor(), -1), rill::Error);
}
