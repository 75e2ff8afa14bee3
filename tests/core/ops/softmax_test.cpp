#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <rill/core/core.h>
#include <support/same.h>

using rill::Tensor;
using Values = std::vector<double>;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor random(const rill::Shape& shape, std::uint64_t seed = 1, rill::DType dtype = rill::float64) {
  rill::Rng rng(seed);
  return rill::randn(shape, rng, dtype);
}

void check_close(const Tensor& got, const Values& want, double tolerance = 1e-9) {
  const Values values = got.to_vector();
  REQUIRE(values.size() == want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    CAPTURE(i);
    CHECK(std::fabs(values[i] - want[i]) <= tolerance);
  }
}

}  // namespace

TEST_CASE("softmax: -infinity gets exactly 0 and no gradient") {
  Tensor x =
      rill::tensor({-1.200427401, -infinity, -infinity, -infinity, -infinity, 0.07192397296, -0.3751793021,
                    -0.5750061868, -0.342212957, -0.04840708529, 0.5556263879, -0.4071565901},
                   {3, 4})
          .set_requires_grad();
  const Tensor y = rill::softmax(x, 1);
  check_close(y, {1, 0, 0, 0, 0, 0.4622933441, 0.2956263597, 0.2420802962, 0.1744306253, 0.2340027743,
                  0.4281041232, 0.1634624772});
  y.backward(
      rill::tensor({0.005823039135, 0.6307083502, -0.5204147484, 0.7679983912, 0.9334655552, -1.48092402,
                    -0.7909282082, -1.624864604, 0.2054419082, 1.508243875, -0.5165635958, -0.5406027212},
                   {3, 4}));
  check_close(x.grad(), {0, 0, 0, 0, 0, -0.07819034113, 0.1539799578, -0.07578961672, 0.02201045202,
                         0.3343868122, -0.255073402, -0.1013238621});
}

TEST_CASE("softmax: a row of -infinity is NaN, extremes are exact") {
  const Tensor nothing = rill::full({3}, -infinity);
  for (const double v : rill::softmax(nothing, 0).to_vector()) CHECK(std::isnan(v));
  const Tensor x = rill::tensor({1e4, -1e4, 0.0, -1e4, 1e4, 1e4}, {2, 3});
  check_close(rill::softmax(x, 1), {1, 0, 0, 0, 0.5, 0.5}, 0);
  check_close(rill::log_softmax(x, 1), {0, -2e4, -1e4, -2e4 - std::log(2.0), -std::log(2.0), -std::log(2.0)},
              1e-11);
  CHECK(rill::softmax(rill::scalar(3), 0).item() == 1);
  CHECK(rill::log_softmax(rill::zeros({0, 4}), 1).shape() == rill::Shape{0, 4});
  CHECK(rill::softmax(rill::zeros({2, 0}), 1).shape() == rill::Shape{2, 0});
  CHECK_THROWS_WITH(rill::softmax(x, 2), "softmax: dimension 2 is outside -2..1");
  CHECK_THROWS_AS(rill::log_softmax(rill::arange(3), 0), rill::Error);
}

TEST_CASE("softmax, log_softmax: every dimension of every layout equals the definition") {
  for (const bool logarithm : {false, true}) {
    for (std::int64_t dim = 0; dim < 3; ++dim) {
      CAPTURE(logarithm);
      CAPTURE(dim);
      test::same(
          [=](const std::vector<Tensor>& in) {
            return std::vector<Tensor>{logarithm ? rill::log_softmax(in[0], dim)
                                                 : rill::softmax(in[0], dim - 3)};
          },
          [=](const std::vector<Tensor>& in) {
            const Tensor log_p = in[0] - rill::logsumexp(in[0], {dim}, true);
            return std::vector<Tensor>{logarithm ? log_p : rill::exp(log_p)};
          },
          {random({3, 4, 5}).set_requires_grad()});
    }
  }
}

TEST_CASE("softmax: the same bits for any number of threads, long rows and many rows") {
  const auto result = [](const rill::Shape& shape) {
    Tensor x = random(shape, 3, rill::float32).set_requires_grad();
    const Tensor y = rill::log_softmax(x, -1);
    y.backward(random(shape, 4, rill::float32));
    Values all = y.to_vector();
    const Values gradient = x.grad().to_vector();
    all.insert(all.end(), gradient.begin(), gradient.end());
    return all;
  };
  for (const rill::Shape& shape : {rill::Shape{3, 50'000}, rill::Shape{5000, 17}}) {
    const test::Threads one(1);
    const Values serial = result(shape);
    const test::Threads four(4);
    CHECK(result(shape) == serial);
  }
}

TEST_CASE("softmax: backward throws if the result was changed in place") {
  Tensor x = random({2, 3}).set_requires_grad();
  const Tensor y = rill::softmax(x, 1);
  y.detach().fill_(1);
  CHECK_THROWS_WITH_AS(rill::backward(rill::sum(y)),
                       doctest::Contains("softmax: a tensor saved for backward"), rill::Error);
}
