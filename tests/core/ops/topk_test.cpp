#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <rill/core/core.h>
#include <support/same.h>

using rill::Tensor;
using Indices = std::vector<std::int64_t>;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Whether a ranks before b, NaN being the greatest.
bool before(double a, double b, bool largest) {
  if (std::isnan(a) || std::isnan(b))
    return largest ? std::isnan(a) && !std::isnan(b) : std::isnan(b) && !std::isnan(a);
  return largest ? a > b : a < b;
}

/// The indices of topk by definition, a stable sort along dim.
Indices indices_by_definition(const Tensor& x, std::int64_t k, int dim, bool largest) {
  rill::Dims order;
  for (int d = 0; d < x.dim(); ++d) {
    if (d != dim) order.push_back(d);
  }
  order.push_back(dim);
  const Tensor rows = x.permute(order).contiguous();
  const std::vector<double> v = rows.to_vector();
  const auto n = static_cast<std::size_t>(x.size(dim)), kept = static_cast<std::size_t>(k);
  Indices chosen;
  for (std::size_t row = 0; n > 0 && row < v.size(); row += n) {
    Indices sorted(n);
    std::iota(sorted.begin(), sorted.end(), 0);
    std::stable_sort(sorted.begin(), sorted.end(), [&](std::int64_t a, std::int64_t b) {
      return before(v[row + static_cast<std::size_t>(a)], v[row + static_cast<std::size_t>(b)], largest);
    });
    chosen.insert(chosen.end(), sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(kept));
  }
  rill::Shape shape = rows.shape();
  shape[x.dim() - 1] = k;
  rill::Dims back = order;
  for (int d = 0; d < x.dim(); ++d) back[static_cast<int>(order[d])] = d;
  return rill::tensor(chosen, shape).permute(back).to_vector<std::int64_t>();
}

/// Equality in which NaN equals NaN.
bool same_values(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

void check_topk(const Tensor& x, std::int64_t k, int dim) {
  for (const bool largest : {true, false}) {
    CAPTURE(x.shape());
    CAPTURE(k);
    CAPTURE(dim);
    CAPTURE(largest);
    const auto [values, indices] = rill::topk(x, k, dim, largest);
    rill::Shape shape = x.shape();
    shape[dim] = k;
    CHECK(values.shape() == shape);
    CHECK(indices.shape() == shape);
    CHECK(values.is_contiguous());
    CHECK(indices.is_contiguous());
    CHECK(values.dtype() == x.dtype());
    CHECK(indices.to_vector<std::int64_t>() == indices_by_definition(x, k, dim, largest));
    CHECK(same_values(values.to_vector(), rill::gather(x, dim, indices).to_vector()));
  }
}

/// Small integers with many ties, of which a fraction `special` is replaced by NaN and infinities.
Tensor with_ties(const rill::Shape& shape, std::uint64_t seed, std::uint64_t different, double special,
                 rill::DType dtype) {
  rill::Rng rng(seed);
  Tensor x = rill::empty(shape, rill::float64);
  const std::array<double, 3> specials{not_a_number, infinity, -infinity};
  for (double& v : x.mutable_span<double>()) {
    v = static_cast<double>(rng.below(different)) - 3;
    if (rng.uniform() < special) v = specials[rng.below(3)];
  }
  return x.to(dtype);
}

}  // namespace

TEST_CASE("topk: equals a stable sort along any dimension of any layout, with ties, NaN and infinities") {
  std::uint64_t seed = 1;
  for (const rill::DType dtype : {rill::float32, rill::float64}) {
    for (const double special : {0.0, 0.02, 0.5}) {
      const Tensor x = with_ties({5, 7, 6}, ++seed, 9, special, dtype);
      for (const int dim : {0, 1, 2}) {
        for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, std::int64_t{3}, x.size(dim)})
          check_topk(x, k, dim);
        check_topk(x.transpose(0, 2), 4, dim);
        check_topk(x.transpose(1, 2), 4, dim);
        check_topk(x.slice(1, 0, 7, 2).slice(2, 1, 6), 3, dim);
        check_topk(x.select(1, 2).unsqueeze(1).expand({5, 4, 6}), 2, dim);
      }
    }
  }
}

TEST_CASE("topk: long rows, short and long lists") {
  std::uint64_t seed = 40;
  for (const rill::DType dtype : {rill::float32, rill::float64}) {
    for (const double special : {0.0, 0.002, 1.0}) {
      // Row lengths of about one block of 128 and of many; k around 64, the limit of the insertion list.
      for (const std::int64_t n : {127, 128, 129, 3001}) {
        for (const std::uint64_t different : {2, 40, 1000000}) {
          const Tensor x = with_ties({3, n}, ++seed, different, special, dtype);
          for (const std::int64_t k :
               {std::int64_t{1}, std::int64_t{20}, std::int64_t{64}, std::int64_t{65}, n})
            check_topk(x, k, 1);
          check_topk(x.t(), 5, 0);
        }
      }
    }
  }
  const Tensor up = rill::arange(1000, rill::float64);
  for (const Tensor& x : {up, -up, rill::full({1000}, not_a_number, rill::float64), rill::zeros({1000})})
    check_topk(x, 10, 0);
}

TEST_CASE("topk: the same result on any number of threads") {
  const Tensor x = with_ties({64, 2000}, 7, 500, 0.001, rill::float32);
  const test::Threads one(1);
  const Indices alone = rill::topk(x, 8).indices.to_vector<std::int64_t>();
  const test::Threads four(4);
  CHECK(rill::topk(x, 8).indices.to_vector<std::int64_t>() == alone);
}

TEST_CASE("topk: NaN is the greatest, and of ties the lower index comes first") {
  const Tensor x = rill::tensor({1.0, not_a_number, 3.0, 3.0, -infinity, not_a_number}, {6});
  CHECK(rill::topk(x, 4).indices.to_vector<std::int64_t>() == Indices{1, 5, 2, 3});
  CHECK(rill::topk(x, 6, 0, false).indices.to_vector<std::int64_t>() == Indices{4, 0, 2, 3, 1, 5});
  CHECK(rill::topk(rill::tensor({0.0, -0.0, 0.0}, {3}), 2).indices.to_vector<std::int64_t>() ==
        Indices{0, 1});
}

TEST_CASE("topk: k = 0, empty tensors and scalars") {
  CHECK(rill::topk(rill::ones({2, 3}), 0).values.shape() == rill::Shape{2, 0});
  CHECK(rill::topk(rill::ones({2, 0}), 0).indices.shape() == rill::Shape{2, 0});
  CHECK(rill::topk(rill::ones({0, 3}), 2).values.shape() == rill::Shape{0, 2});
  CHECK(rill::topk(rill::ones({3, 0, 2}), 1, 0).values.shape() == rill::Shape{1, 0, 2});
  const auto [value, index] = rill::topk(rill::scalar(5), 1);
  CHECK(value.shape() == rill::Shape{});
  CHECK(value.item() == 5);
  CHECK(index.item() == 0);
  for (const rill::Shape& shape : {rill::Shape{2, 3}, rill::Shape{2, 0}}) {
    Tensor x = rill::ones(shape).set_requires_grad();
    rill::backward(rill::sum(rill::topk(x, 0).values));
    CHECK(x.grad().to_vector() == rill::zeros(shape).to_vector());
  }
}

TEST_CASE("topk: the gradient goes to the selected elements") {
  Tensor x = rill::tensor({4.0, 1.0, 4.0, 2.0, 7.0, 2.0}, {2, 3}).set_requires_grad();
  const auto [values, indices] = rill::topk(x, 2, 1);
  CHECK_FALSE(indices.requires_grad());
  values.backward(rill::tensor({1.0, 2.0, 3.0, 4.0}, {2, 2}));
  CHECK(x.grad().to_vector() == std::vector<double>{1, 0, 2, 4, 3, 0});
  rill::topk(x, 2, 0, false).values.backward(rill::tensor({10.0, 20.0, 30.0, 40.0, 50.0, 60.0}, {2, 3}));
  CHECK(x.grad().to_vector() == std::vector<double>{41, 20, 62, 14, 53, 30});
}

TEST_CASE("topk: errors name k and its range") {
  const Tensor x = rill::ones({2, 3});
  CHECK_THROWS_WITH_AS(rill::topk(x, 4),
                       "topk: 4 of the 3 elements along dimension -1 of [2, 3]; k must be in 0..3",
                       rill::Error);
  CHECK_THROWS_WITH_AS(rill::topk(x, -1, 0),
                       "topk: -1 of the 2 elements along dimension 0 of [2, 3]; k must be in 0..2",
                       rill::Error);
  CHECK_THROWS_WITH_AS(rill::topk(rill::scalar(1), 0),
                       "topk: 0 of the 1 elements along dimension -1 of []; k must be in 1..1", rill::Error);
  CHECK_THROWS_WITH_AS(rill::topk(x, 1, 2), "topk: dimension 2 is outside -2..1", rill::Error);
  CHECK_THROWS_AS(rill::topk(rill::zeros({3}, rill::int64), 1), rill::Error);
}
