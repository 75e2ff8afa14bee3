#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <rill/core/ops.h>
#include <rill/core/random.h>
#include <rill/nn/layers/linear.h>
#include <rill/optim/clip.h>
#include <support/same.h>

namespace {

using namespace rill;
using namespace rill::optim;

constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor with_grad(const Tensor& grad) {
  Tensor t = zeros_like(grad).set_requires_grad();
  t.set_grad(grad);
  return t;
}

TEST_CASE("clip: norms of every order") {
  const std::vector<Tensor> parameters{with_grad(tensor({3.F, -4.F}, {2})), with_grad(tensor({12.}, {1})),
                                       zeros({5})};
  CHECK(grad_norm(parameters) == doctest::Approx(13).epsilon(1e-14));
  CHECK(grad_norm(parameters, 1) == doctest::Approx(19).epsilon(1e-14));
  CHECK(grad_norm(parameters, infinity) == 12);
  CHECK(grad_norm(parameters, 3) == doctest::Approx(std::cbrt(27 + 64 + 1728)).epsilon(1e-14));
  CHECK(grad_norm({zeros({5})}) == 0);
  CHECK(grad_norm(std::vector<Tensor>{}) == 0);
  CHECK_THROWS_WITH_AS(grad_norm(parameters, 0), "grad_norm: norm_type is 0; it must be above 0", Error);
  CHECK_THROWS_AS(grad_norm(parameters, std::nan("")), Error);
  CHECK_THROWS_AS(grad_norm({Tensor()}), Error);
}

TEST_CASE("clip: norms of float32 gradients are computed in float64") {
  const std::vector<Tensor> large{with_grad(full({1000}, 1e30))};
  CHECK(grad_norm(large) == doctest::Approx(static_cast<double>(1e30F) * std::sqrt(1000.0)).epsilon(1e-12));
  const std::vector<Tensor> many{with_grad(full({3'000'000}, 0.1))};
  CHECK(grad_norm(many, 1) == doctest::Approx(static_cast<double>(0.1F) * 3e6).epsilon(1e-12));
}

TEST_CASE("clip: a parameter that is listed twice counts once") {
  Rng rng(1);
  const Tensor a = with_grad(randn({6, 10}, rng, float64)), b = with_grad(randn({9000}, rng, float64));
  const double want = grad_norm({a, b});
  CHECK(grad_norm({a, b, a}) == want);
  CHECK(clip_grad_norm_({b, a, b}, 0.5 * want) == doctest::Approx(want).epsilon(1e-14));
  CHECK(grad_norm({a, b}) == doctest::Approx(0.5 * want).epsilon(1e-6));
}

TEST_CASE("clip: a view of a parameter means its leaf, and another result is an error") {
  Rng rng(1);
  const nn::Linear linear({.in_features = 3, .out_features = 2}, rng);
  sum(linear(ones({4, 3}))).backward();
  const double norm = grad_norm(linear.parameters());
  CHECK(norm > 0);
  CHECK(grad_norm({linear.weight(), linear.parameter("bias")}) == norm);
  CHECK(clip_grad_norm_({linear.weight(), linear.weight(), linear.parameter("bias")}, norm / 2) == norm);
  CHECK(grad_norm(linear.parameters()) == doctest::Approx(norm / 2).epsilon(1e-5));
  clip_grad_value_({linear.parameter("bias")}, 0.125);
  CHECK(amax(linear.grad("bias")).item() == 0.125);
  const std::vector<Tensor> sliced{linear.weight()};  // views without their leaves
  CHECK_THROWS_WITH_AS(grad_norm(sliced), "grad_norm: parameter 0 '' is a view or result; pass the leaf",
                       Error);
  const NoGrad no_grad;
  const std::vector<Tensor> unrecorded{linear.weight()};
  CHECK_THROWS_AS(clip_grad_value_(unrecorded, 1), Error);
}

TEST_CASE("clip: any number of threads gives the same bits") {
  Rng rng(1);
  const std::vector<Tensor> parameters{with_grad(randn({70'001}, rng)),
                                       with_grad(randn({3, 5}, rng, float64))};
  std::vector<double> norms;
  for (int threads : {1, 2, 4}) {
    const test::Threads number(threads);
    norms.push_back(grad_norm(parameters));
  }
  CHECK(norms[0] == norms[1]);
  CHECK(norms[0] == norms[2]);
}

TEST_CASE("clip: a non-finite norm is returned and changes nothing") {
  for (double bad : {std::nan(""), infinity, -infinity}) {
    for (double norm_type : {1.0, 2.0, 3.0, infinity}) {
      const Tensor x = with_grad(tensor({1., bad, 2.}, {3}));
      CHECK(!std::isfinite(clip_grad_norm_({x}, 0.1, norm_type)));
      CHECK(x.grad().to_vector()[0] == 1);
      CHECK(x.grad().to_vector()[2] == 2);
    }
  }
}

TEST_CASE("clip: limits of zero and infinity, invalid limits") {
  const Tensor x = with_grad(tensor({3., 4.}, {2}));
  CHECK(clip_grad_norm_({x}, infinity) == 5);
  CHECK(x.grad().to_vector() == std::vector<double>{3, 4});
  CHECK(clip_grad_norm_({x}, 0) == 5);
  CHECK(x.grad().to_vector() == std::vector<double>{0, 0});
  CHECK_THROWS_WITH_AS(clip_grad_norm_({x}, -1), "clip_grad_norm_: max_norm is -1; it must be at least 0",
                       Error);
  CHECK_THROWS_AS(clip_grad_norm_({x}, std::nan("")), Error);
}

TEST_CASE("clip: values are clamped and NaN is kept") {
  const Tensor x = with_grad(tensor({-3.F, -0.5F, 0.F, 0.25F, 7.F, std::nanf("")}, {6}));
  clip_grad_value_({x, zeros({2})}, 0.5);
  const std::vector<double> got = x.grad().to_vector();
  CHECK(std::vector<double>(got.begin(), got.begin() + 5) == std::vector<double>{-0.5, -0.5, 0, 0.25, 0.5});
  CHECK(std::isnan(got[5]));
  CHECK_THROWS_AS(clip_grad_value_({x}, -1), Error);
}

}  // namespace
