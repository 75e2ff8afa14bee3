#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <rill/core/core.h>
#include <support/same.h>

using rill::Tensor;
using Values = std::vector<double>;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Tensor counting(const rill::Shape& shape) {
  return rill::arange(rill::numel(shape), rill::float64).reshape(shape);
}

Tensor random(const rill::Shape& shape, std::uint64_t seed = 1, rill::DType dtype = rill::float64) {
  rill::Rng rng(seed);
  return rill::randn(shape, rng, dtype);
}

/// x [I, J, K] summed over the dims whose flag is set, by definition.
Values sum_by_definition(const Tensor& x, bool over0, bool over1, bool over2) {
  const rill::Shape& s = x.shape();
  const Values v = x.to_vector();
  const std::int64_t a = over0 ? 1 : s[0], b = over1 ? 1 : s[1], c = over2 ? 1 : s[2];
  Values out(static_cast<std::size_t>(a * b * c));
  std::size_t at = 0;
  for (std::int64_t i = 0; i < s[0]; ++i) {
    for (std::int64_t j = 0; j < s[1]; ++j) {
      for (std::int64_t k = 0; k < s[2]; ++k) {
        out[static_cast<std::size_t>(((over0 ? 0 : i) * b + (over1 ? 0 : j)) * c + (over2 ? 0 : k))] +=
            v[at++];
      }
    }
  }
  return out;
}

bool close(const Values& a, const Values& b, double tolerance) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](double x, double y) {
           return std::fabs(x - y) <= tolerance * std::max(1.0, std::fabs(y));
         });
}

}  // namespace

TEST_CASE("sum: equals its definition over every set of dimensions in every layout") {
  const Tensor base = random({4, 3, 5});
  const Tensor wide = random({8, 3, 10}, 2);
  const Tensor layouts[] = {base,
                            random({5, 3, 4}).permute({2, 1, 0}),
                            random({3, 5, 4}).permute({2, 0, 1}),
                            wide.narrow(0, 2, 4).narrow(2, 3, 5),
                            wide.slice(0, 0, 8, 2).slice(2, 1, 10, 2),
                            random({4, 1, 5}).expand({4, 3, 5}),
                            random({3, 1}).expand({4, 3, 5})};
  for (const Tensor& x : layouts) {
    for (int set = 1; set < 8; ++set) {
      rill::Dims dims;
      for (int d = 0; d < 3; ++d) {
        if (set >> d & 1) dims.push_back(d - (d == 1 ? 3 : 0));
      }
      CAPTURE(fmt::format("{} {} {}", x.shape(), x.strides(), dims));
      const Values want = sum_by_definition(x, set & 1, set & 2, set & 4);
      const Tensor y = rill::sum(x, dims, true);
      CHECK(y.is_contiguous());
      CHECK(y.dim() == 3);
      CHECK(close(y.to_vector(), want, 1e-14));
      CHECK(rill::sum(x, dims).to_vector() == y.to_vector());
      CHECK(rill::sum(x, dims).dim() == 3 - dims.size());
    }
    CHECK(close(rill::sum(x).to_vector(), sum_by_definition(x, true, true, true), 1e-14));
  }
}

TEST_CASE("reductions: shapes, negative dims and invalid dims") {
  const Tensor x = counting({2, 3, 4});
  CHECK(rill::sum(x).shape() == rill::Shape{});
  CHECK(rill::sum(x, {}, true).shape() == rill::Shape{1, 1, 1});
  CHECK(rill::mean(x, {-1, 0}).shape() == rill::Shape{3});
  CHECK(rill::mean(x, {-1, 0}).to_vector() == Values{7.5, 11.5, 15.5});
  CHECK(rill::sum(rill::scalar(3), {0}).item() == 3);
  CHECK(rill::sum(rill::scalar(3), {-1}).shape() == rill::Shape{});
  CHECK_THROWS_WITH(rill::sum(x, {0, -3}), "sum: dimension -3 is named twice in [0, -3]");
  CHECK_THROWS_WITH(rill::mean(x, {3}), "mean: dimension 3 is outside -3..2");
  CHECK_THROWS_WITH(rill::sum(rill::arange(3)),
                    "sum: dtype int64 is not floating; use .to(float32) or .to(float64)");
  CHECK_THROWS_WITH(rill::sum_to(x, {2, 4}),
                    "sum_to: [2, 3, 4] was not broadcast from [2, 4] (sizes 3 and 2 at dimension 1)");
  CHECK_THROWS_AS(rill::sum_to(counting({2}), {1, 2}), rill::Error);
}

TEST_CASE("sum_to: undoes broadcasting") {
  const Tensor x = counting({2, 3});
  CHECK(rill::sum_to(x, {3}).to_vector() == Values{3, 5, 7});
  CHECK(rill::sum_to(x, {2, 1}).to_vector() == Values{3, 12});
  CHECK(rill::sum_to(x, {}).to_vector() == Values{15});
  CHECK(rill::sum_to(x, {2, 3}).to_vector() == x.to_vector());
  CHECK(rill::sum_to(counting({1, 1, 3}), {3}).shape() == rill::Shape{3});
  CHECK(rill::sum_to(rill::zeros({0, 3}), {3}).to_vector() == Values{0, 0, 0});
}

TEST_CASE("reductions: empty tensors") {
  const Tensor x = rill::zeros({0, 3}, rill::float64);
  CHECK(rill::sum(x, {0}).to_vector() == Values{0, 0, 0});
  CHECK(rill::sum(x, {1}).shape() == rill::Shape{0});
  CHECK(rill::sum(x).item() == 0);
  CHECK(std::isnan(rill::mean(x).item()));
  CHECK(std::isnan(rill::var(x, {0}).to_vector()[2]));
  CHECK(rill::prod(x, {0}).to_vector() == Values{1, 1, 1});
  CHECK(rill::logsumexp(x, {0}).to_vector() == Values{-infinity, -infinity, -infinity});
  CHECK(rill::norm(x, 2).item() == 0);
  CHECK(rill::cumsum(x, 0).shape() == rill::Shape{0, 3});
  CHECK_THROWS_WITH(rill::norm(x, infinity), "norm: p = inf over no element of shape [0, 3] has no value");
  CHECK_THROWS_WITH(rill::amax(x), "amax: shape [0, 3] has no element to choose from");
  CHECK_THROWS_WITH(rill::argmin(x, 0), "argmin: shape [0, 3] has no element to choose from");
  CHECK(rill::amax(rill::zeros({0, 3}), {1}).shape() == rill::Shape{0});
  Tensor leaf = rill::zeros({0, 3}, rill::float64).set_requires_grad();
  rill::backward(rill::sum(rill::sum(leaf, {0}) + rill::logsumexp(leaf, {0}, true)));
  CHECK(leaf.grad().shape() == rill::Shape{0, 3});
}

TEST_CASE("reductions: empty views with any strides") {
  const Tensor narrow = rill::zeros({4, 3, 0}).permute({1, 2, 0});
  const Tensor wide =
      rill::zeros({0, 3, 2}).permute({2, 1, 0}).slice(0, 0, 2).unsqueeze(0).expand({2, 2, 3, 0});
  for (const Tensor& x : {narrow, wide}) {
    const Tensor plain = rill::zeros(x.shape());
    for (std::int64_t dim = 0; dim < x.dim(); ++dim) {
      for (const auto& f : std::vector<std::function<Tensor(const Tensor&)>>{
               [&](const Tensor& t) { return sum(t, {dim}); },
               [&](const Tensor& t) { return mean(t, {dim}); },
               [&](const Tensor& t) { return prod(t, {dim}); },
               [&](const Tensor& t) { return logsumexp(t, {dim}); },
               [&](const Tensor& t) { return norm(t, 0, {dim}); },
               [&](const Tensor& t) { return norm(t, 2, {dim}); },
               [&](const Tensor& t) { return var(t, {dim}); },
               [&](const Tensor& t) { return softmax(t, dim); },
               [&](const Tensor& t) { return log_softmax(t, dim); },
               [&](const Tensor& t) { return layer_norm(t, {t.size(-1)}); }}) {
        CHECK(rill::to_string(f(x)) == rill::to_string(f(plain)));
      }
    }
  }
}

TEST_CASE("sum: stays accurate over millions of float32 values") {
  // With sequential addition in float32, the first two would be off by 4 % and 1.5 %.
  CHECK(rill::sum(rill::full({5'000'000}, 0.1)).item() == doctest::Approx(5'000'000 * 0.1f).epsilon(2e-5));
  const Tensor columns = rill::sum(rill::full({2'000'000, 2}, 0.1), {0});
  CHECK(columns.to_vector()[1] == doctest::Approx(2'000'000 * 0.1f).epsilon(2e-5));
  CHECK(rill::cumsum(rill::full({1'000'000}, 0.1), 0).to_vector().back() ==
        doctest::Approx(1'000'000 * 0.1f).epsilon(2e-5));
}

TEST_CASE("reductions: the same bits for any number of threads") {
  const Tensor x = random({300, 700}, 3, rill::float32);
  const Tensor tall = random({70'000, 3}, 4, rill::float32);
  const auto results = [&] {
    Values all;
    for (const Tensor& y :
         {rill::sum(x), rill::sum(x, {0}), rill::sum(x, {1}), rill::sum(x.t(), {0}), rill::sum(tall, {0}),
          rill::sum(tall), rill::var(x), rill::var(tall, {0}), rill::norm(x, 2), rill::norm(tall, 3, {0}),
          rill::sum(x.reshape({3, 100, 700}), {0, 2}), rill::logsumexp(x, {1}), rill::prod(x, {1})}) {
      const Values v = y.to_vector();
      all.insert(all.end(), v.begin(), v.end());
    }
    return all;
  };
  const test::Threads one(1);
  const Values serial = results();
  for (const int n : {2, 3, 4}) {
    const test::Threads several(n);
    CHECK(results() == serial);
  }
}

TEST_CASE("sum: an expanded gradient can be accumulated into") {
  // Each sum passes on an expanded gradient, which must be copied before the other is added to it.
  for (const bool rows_first : {false, true}) {
    const Tensor x = rill::ones({2, 3}, rill::float64).set_requires_grad();
    const Tensor y = x * 2;
    const Tensor columns = rill::sum(rill::sum(y, {0}) * rill::tensor({1.0, 2.0, 3.0}));
    const Tensor rows = rill::sum(rill::sum(y, {1}) * rill::tensor({10.0, 20.0}));
    rill::backward(rows_first ? rows + columns : columns + rows);
    CHECK(x.grad().to_vector() == Values{22, 24, 26, 42, 44, 46});
  }
}

TEST_CASE("var and std: against PyTorch's definition with any correction") {
  const Tensor x = rill::tensor({1.0, 2.0, 4.0, 9.0}, {4});
  CHECK(rill::var(x).item() == doctest::Approx(38.0 / 3));
  CHECK(rill::var(x, {}, 0).item() == doctest::Approx(9.5));
  CHECK(rill::stddev(x, {0}, 0).item() == doctest::Approx(std::sqrt(9.5)));
  CHECK(std::isnan(rill::var(rill::tensor({5.0})).item()));
  Tensor equal = rill::ones({3}, rill::float64).set_requires_grad();
  rill::backward(rill::stddev(equal));
  CHECK(equal.grad().to_vector() == Values{0, 0, 0});
  // Accurate despite the large mean.
  CHECK(rill::var(rill::tensor({10000.0f, 10001.0f, 10002.0f})).item() == doctest::Approx(1.0));
}

TEST_CASE("logsumexp: extremes neither overflow nor give NaN") {
  const Tensor x = rill::tensor({1e4, 1e4, -infinity, -infinity, infinity, 0.0, not_a_number, 0.0}, {4, 2});
  const Values y = rill::logsumexp(x, {1}).to_vector();
  CHECK(y[0] == doctest::Approx(1e4 + std::log(2.0)).epsilon(1e-15));
  CHECK(y[1] == -infinity);
  CHECK(y[2] == infinity);
  CHECK(std::isnan(y[3]));
  Tensor leaf = rill::tensor({-infinity, -infinity, 0.0, 0.0}, {2, 2}).set_requires_grad();
  rill::backward(rill::sum(rill::logsumexp(leaf, {1})));
  CHECK(leaf.grad().to_vector() == Values{0, 0, 0.5, 0.5});
}

TEST_CASE("norm: every p, and gradient 0 at zero") {
  const Tensor x = rill::tensor({3.0, -4.0, 0.0}, {3});
  CHECK(rill::norm(x).item() == 5);
  CHECK(rill::norm(x, 1).item() == 7);
  CHECK(rill::norm(x, 0).item() == 2);
  CHECK(rill::norm(x, infinity).item() == 4);
  CHECK(rill::norm(x, -infinity).item() == 0);
  CHECK(rill::norm(x, 3).item() == doctest::Approx(std::cbrt(91.0)));
  for (const double p : {0.0, 0.5, 1.0, 2.0, 3.0, infinity}) {
    CAPTURE(p);
    Tensor zero = rill::zeros({2}, rill::float64).set_requires_grad();
    rill::backward(rill::norm(zero, p));
    CHECK(zero.grad().to_vector() == Values{0, 0});
  }
  Tensor ties = rill::tensor({2.0, -2.0, 1.0}, {3}).set_requires_grad();
  rill::backward(rill::norm(ties, infinity));
  CHECK(ties.grad().to_vector() == Values{0.5, -0.5, 0});
  CHECK_THROWS_WITH(rill::norm(x, not_a_number), "norm: p is NaN");
}

TEST_CASE("amax: ties share the gradient evenly") {
  Tensor x = rill::tensor({1.0, 2.0, 2.0, 3.0, 3.0, 3.0}, {2, 3}).set_requires_grad();
  const Tensor y = rill::amax(x, {1});
  CHECK(y.to_vector() == Values{2, 3});
  y.backward(rill::tensor({-1.53317892, -0.713118919}));
  CHECK(close(x.grad().to_vector(),
              {0, -0.76658946, -0.76658946, -0.2377063063, -0.2377063063, -0.2377063063}, 1e-9));
}

TEST_CASE("max and argmax: first of ties, NaN is the greatest, along any dimension") {
  const Tensor x =
      rill::tensor({1.0, 7.0, 7.0, not_a_number, 9.0, not_a_number, -infinity, -infinity, -infinity}, {3, 3});
  const auto [values, indices] = rill::max(x, -1);
  CHECK(values.to_vector()[0] == 7);
  CHECK(std::isnan(values.to_vector()[1]));
  CHECK(values.to_vector()[2] == -infinity);
  CHECK(indices.dtype() == rill::int64);
  CHECK(indices.to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 0, 0});
  CHECK(rill::argmin(x, 1, true).shape() == rill::Shape{3, 1});
  CHECK(rill::argmin(x, 1).to_vector() == Values{0, 0, 0});
  const Tensor y = counting({2, 3});
  CHECK(rill::argmax(y.t(), 0).to_vector() == Values{2, 2});
  CHECK(rill::argmax(y.t(), 1).to_vector() == Values{1, 1, 1});
  CHECK(rill::argmax(y).item() == 5);
  CHECK(rill::argmin(y.t()).item() == 0);
  CHECK(rill::argmax(rill::tensor({0.0, 5.0, 1.0, 2.0}, {2, 2}).t()).item() == 2);
  CHECK(rill::max(counting({2, 3}), 0).values.to_vector() == Values{3, 4, 5});
  CHECK_FALSE(rill::max(counting({2, 3}).set_requires_grad(), 0).indices.requires_grad());
}

TEST_CASE("prod: zeros have exact gradients") {
  Tensor x = rill::tensor({2.0, 0.0, 3.0, 0.0, 0.0, 5.0, 2.0, 3.0, 4.0}, {3, 3}).set_requires_grad();
  const Tensor y = rill::prod(x, {1});
  CHECK(y.to_vector() == Values{0, 0, 24});
  rill::backward(rill::sum(y));
  CHECK(x.grad().to_vector() == Values{0, 6, 0, 0, 0, 0, 12, 8, 6});
  CHECK(rill::prod(x).item() == 0);
}

TEST_CASE("cumsum: along any dimension") {
  const Tensor x = counting({2, 3});
  CHECK(rill::cumsum(x, 1).to_vector() == Values{0, 1, 3, 3, 7, 12});
  CHECK(rill::cumsum(x, 0).to_vector() == Values{0, 1, 2, 3, 5, 7});
  CHECK(rill::cumsum(x.t(), -1).to_vector() == Values{0, 3, 1, 5, 2, 7});
  CHECK(rill::cumsum(rill::scalar(2), 0).item() == 2);
  CHECK_THROWS_AS(rill::cumsum(x, 2), rill::Error);
}
