#include <doctest/doctest.h>

#include <cstring>

#include <rill/core/core.h>

using rill::Tensor;

namespace {

/// The product by its definition, in float64.
Tensor by_definition(const Tensor& a, const Tensor& b) {
  const std::int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  Tensor y = rill::zeros({m, n}, rill::float64);
  const auto x = a.to_vector(), w = b.to_vector();
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l)
        sum += x[static_cast<std::size_t>(i * k + l)] * w[static_cast<std::size_t>(l * n + j)];
      y.mutable_data<double>()[i * n + j] = sum;
    }
  }
  return y;
}

double distance(const Tensor& a, const Tensor& b) {
  return a.numel() == 0 ? 0 : rill::amax(rill::abs(a.to(rill::float64) - b.to(rill::float64))).item();
}

}  // namespace

TEST_CASE("matmul: every layout of both operands gives the sum of products") {
  rill::Rng rng(1);
  for (auto [m, k, n] : {std::array<std::int64_t, 3>{1, 1, 1},
                         {3, 5, 2},
                         {1, 7, 9},
                         {8, 1, 3},
                         {17, 33, 65},
                         {0, 3, 2},
                         {2, 0, 3},
                         {64, 64, 64}}) {
    const Tensor a = rill::randn({m, k}, rng, rill::float64), b = rill::randn({k, n}, rng, rill::float64);
    const Tensor want = by_definition(a, b);
    const auto layouts = [](const Tensor& t) {
      Tensor wide = rill::zeros({t.size(0), 2 * t.size(1)}, t.dtype());
      Tensor gaps = wide.slice(1, 0, 2 * t.size(1), 2);
      Tensor narrow = wide.narrow(1, 0, t.size(1));
      return std::vector<Tensor>{t, t.t().clone().t(), gaps.copy_(t).clone(), Tensor(gaps),
                                 narrow.clone().copy_(t)};
    };
    for (const Tensor& x : layouts(a)) {
      for (const Tensor& w : layouts(b)) {
        if (distance(x, a) > 0 || distance(w, b) > 0) continue;
        CHECK(distance(rill::matmul(x, w), want) < 1e-12);
        CHECK(distance(rill::matmul(x.to(rill::float32), w.to(rill::float32)), want) < 1e-3);
      }
    }
  }
}

TEST_CASE("matmul: operands may be expanded") {
  const Tensor row = rill::tensor({1.0, 2.0, 3.0}).reshape({1, 3}).expand({4, 3});
  const Tensor w = rill::ones({3, 2}, rill::float64);
  CHECK(rill::matmul(row, w).to_vector() == std::vector<double>(8, 6));
  CHECK(rill::matmul(w.t(), row.t()).to_vector() == std::vector<double>(8, 6));
}

TEST_CASE("matmul: shapes follow NumPy") {
  const auto shape = [](const rill::Shape& a, const rill::Shape& b) {
    return rill::matmul(rill::zeros(a), rill::zeros(b)).shape();
  };
  CHECK(shape({3}, {3}) == rill::Shape{});
  CHECK(shape({2, 3}, {3}) == rill::Shape{2});
  CHECK(shape({3}, {3, 2}) == rill::Shape{2});
  CHECK(shape({5, 2, 3}, {3}) == rill::Shape{5, 2});
  CHECK(shape({3}, {5, 3, 2}) == rill::Shape{5, 2});
  CHECK(shape({5, 1, 2, 3}, {4, 3, 2}) == rill::Shape{5, 4, 2, 2});
  CHECK(shape({0, 2, 3}, {3, 2}) == rill::Shape{0, 2, 2});
  CHECK_THROWS_WITH(shape({2, 3}, {4, 5}), "matmul: inner sizes of [2, 3] and [4, 5] differ");
  CHECK_THROWS_WITH(shape({}, {4}), doctest::Contains("at least one dimension"));
  CHECK_THROWS_WITH(rill::matmul(rill::zeros({2, 2}), rill::zeros({2, 2}, rill::float64)),
                    doctest::Contains("dtypes float32 and float64 differ"));
  CHECK_THROWS_WITH(rill::linear(rill::zeros({2, 3}), rill::zeros({4, 2})), doctest::Contains("do not fit"));
}

TEST_CASE("matmul: one and several threads give the same bits") {
  rill::Rng rng(2);
  const Tensor a = rill::randn({300, 257}, rng), b = rill::randn({257, 515}, rng);
  const int before = rill::num_threads();
  std::vector<Tensor> results;
  for (int threads : {1, 2, 4}) {
    rill::set_num_threads(threads);
    Tensor x = a.clone().set_requires_grad(), w = b.clone().set_requires_grad();
    Tensor y = rill::matmul(x, w);
    rill::sum(y * y).backward();
    for (const Tensor& t : {y.detach(), x.grad(), w.grad()}) results.push_back(t);
  }
  rill::set_num_threads(before);
  for (std::size_t i = 3; i < results.size(); ++i) {
    const Tensor &got = results[i], &want = results[i % 3];
    CHECK(std::memcmp(got.data<float>(), want.data<float>(), static_cast<std::size_t>(got.numel()) * 4) == 0);
  }
}
