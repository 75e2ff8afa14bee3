#include <doctest/doctest.h>

#include <limits>

#include <rill/core/core.h>

using rill::Tensor;
using Values = std::vector<double>;

namespace {
Tensor counting(const rill::Shape& shape) {
  return rill::arange(rill::numel(shape), rill::float64).reshape(shape);
}
}  // namespace

TEST_CASE("views: share data and keep NumPy's order") {
  Tensor x = counting({2, 3});
  CHECK(x.t().to_vector() == Values{0, 3, 1, 4, 2, 5});
  CHECK(x.select(1, -1).to_vector() == Values{2, 5});
  CHECK(x.narrow(1, -2, 2).to_vector() == Values{1, 2, 4, 5});
  CHECK(x.slice(1, 0, 3, 2).to_vector() == Values{0, 2, 3, 5});
  CHECK(x.slice(1, -2, 100).to_vector() == Values{1, 2, 4, 5});
  CHECK(x.slice(1, 2, 1).numel() == 0);
  CHECK(x.unsqueeze(1).expand({2, 2, 3}).to_vector() == Values{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK(x.permute({1, 0}).reshape({6}).to_vector() == Values{0, 3, 1, 4, 2, 5});
  Tensor row = x.select(0, 0);
  row.fill_(9);
  CHECK(x.to_vector() == Values{9, 9, 9, 3, 4, 5});
}

TEST_CASE("reshape: a view where strides allow it and a copy otherwise") {
  Tensor x = counting({2, 3, 4});
  const auto shares = [&](const Tensor& y) { return y.impl().storage == x.impl().storage; };
  CHECK(shares(x.narrow(2, 0, 2).reshape({6, 2})));
  CHECK(shares(x.narrow(0, 0, 1).transpose(0, 1).reshape({3, 4})));
  CHECK(shares(x.reshape({1, 24, 1})));
  CHECK_FALSE(shares(x.transpose(0, 1).reshape({6, 4})));
  CHECK(x.transpose(0, 1).reshape({6, 4}).to_vector() ==
        Values{0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 16, 17, 18, 19, 8, 9, 10, 11, 20, 21, 22, 23});
  CHECK(x.reshape({4, -1}).shape() == rill::Shape{4, 6});
  CHECK(rill::zeros({0, 3}).reshape({3, 0}).numel() == 0);
  CHECK_THROWS_WITH(x.reshape({5, -1}), "reshape: 24 elements of shape [2, 3, 4] do not fit [5, -1]");
  CHECK_THROWS_WITH(x.reshape({-1, -1}), "reshape: [-1, -1] has more than one -1");
  CHECK_THROWS_AS(rill::zeros({0}).reshape({0, -1}), rill::Error);
}

TEST_CASE("views: wrong arguments are errors that name sizes") {
  Tensor x = counting({2, 3});
  CHECK_THROWS_WITH(x.narrow(1, 2, 2), "narrow: start 2 and length 2 leave 0..3 of dimension 1 of [2, 3]");
  CHECK_THROWS_WITH(x.select(0, 2), "select: index 2 is outside dimension 0 of [2, 3]");
  CHECK_THROWS_WITH(x.permute({0, 0}), "permute: [0, 0] names dimension 0 twice");
  CHECK_THROWS_WITH(x.expand({2, 4}),
                    "expand: shape [2, 3] does not expand to [2, 4] (size 3 at dimension 1)");
  CHECK_THROWS_AS(x.slice(0, 0, 2, 0), rill::Error);
  CHECK_THROWS_AS(rill::split(x, std::vector<std::int64_t>{1, 3}, 1), rill::Error);
  CHECK_THROWS_AS(rill::scalar(1).select(0, 0), rill::Error);
}

TEST_CASE("cat, stack, flip, repeat, split and chunk match NumPy") {
  Tensor a = counting({2, 2}), b = counting({2, 1});
  CHECK(rill::cat({a, b}, 1).to_vector() == Values{0, 1, 0, 2, 3, 1});
  CHECK(rill::stack({a, a}, 2).to_vector() == Values{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(rill::flip(a, {-1}).to_vector() == Values{1, 0, 3, 2});
  CHECK(rill::flip(a, {0, 1}).to_vector() == Values{3, 2, 1, 0});
  CHECK(rill::repeat(b, {1, 2}).to_vector() == Values{0, 0, 1, 1});
  CHECK(rill::repeat(b, {2, 1, 2}).shape() == rill::Shape{2, 2, 2});
  CHECK(rill::tril(a).to_vector() == Values{0, 0, 2, 3});
  CHECK(rill::split(counting({5}), 2).size() == 3);
  CHECK(rill::split(counting({5}), 2).back().to_vector() == Values{4});
  CHECK(rill::chunk(counting({5}), 4).size() == 3);
  CHECK(rill::cat({rill::arange(2), rill::arange(1)}).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{0, 1, 0});
  CHECK_THROWS_WITH(rill::cat({a, rill::zeros({2, 2})}, 0),
                    doctest::Contains("dtypes float64 and float32 differ"));
  CHECK_THROWS_WITH(rill::cat({a, counting({1, 3})}, 0), doctest::Contains("differ outside dimension 0"));
  CHECK_THROWS_AS(rill::cat({}), rill::Error);
}

TEST_CASE("shapes: sums and products of sizes beyond 2^63 - 1 are errors") {
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  const Tensor x = rill::zeros({1}).expand({huge});
  CHECK_THROWS_WITH_AS(rill::cat({x, x, x}),
                       "cat: the size 4611686018427387904 + 4611686018427387904 exceeds 2^63 - 1",
                       rill::Error);
  CHECK_THROWS_WITH_AS(rill::split(x, {huge, huge, huge}),
                       "split: the size 4611686018427387904 + 4611686018427387904 exceeds 2^63 - 1",
                       rill::Error);
  CHECK_THROWS_WITH_AS(rill::repeat(x, {4}), "repeat: the size 4611686018427387904 x 4 exceeds 2^63 - 1",
                       rill::Error);
  const Tensor nothing = rill::zeros({0, huge, 8});
  CHECK_THROWS_WITH_AS(nothing.flatten(1, 2), "flatten: the size 4611686018427387904 x 8 exceeds 2^63 - 1",
                       rill::Error);
  CHECK_THROWS_AS(rill::matmul(rill::zeros({huge, 4, 0}), rill::zeros({0, 1})), rill::Error);
}

TEST_CASE("repeat: every dimension of a tensor of any rank can be tiled") {
  for (const int rank : {1, 2, 5, rill::Dims::max_rank}) {
    CAPTURE(rank);
    const Tensor x = counting(rill::Dims::filled(rank, 2)).set_requires_grad();
    const Tensor y = rill::repeat(x, rill::Dims::filled(rank, 2));
    Tensor expected = x.detach();
    for (int d = 0; d < rank; ++d) expected = rill::cat({expected, expected}, d);
    CHECK(y.shape() == expected.shape());
    CHECK(y.to_vector() == expected.to_vector());
    rill::backward(rill::sum(y));
    CHECK(x.grad().to_vector() == Values(1 << rank, 1 << rank));
  }
}

TEST_CASE("split, chunk and slice: correct for the largest possible sizes") {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  const Tensor x = rill::zeros({1}).expand({largest});
  CHECK(rill::split(x, largest / 2 + 2).size() == 2);
  CHECK(rill::split(x, largest / 2 + 2)[1].size(0) == largest / 2 - 1);
  CHECK(rill::chunk(x, 3).size() == 3);
  CHECK(rill::chunk(rill::ones({2}), largest).size() == 2);
  CHECK(x.slice(0, 1, largest, largest - 2).size(0) == 2);
  CHECK(counting({3}).slice(0, 0, largest, largest).to_vector() == Values{0});
}

TEST_CASE("views and reductions: empty tensors with huge sizes") {
  constexpr std::int64_t huge = std::int64_t{1} << 40;
  const Tensor nothing = rill::zeros({0, huge, huge});
  CHECK(nothing.select(1, huge - 1).shape() == rill::Shape{0, huge});
  CHECK(nothing.narrow(1, huge - 1, 1).shape() == rill::Shape{0, 1, huge});
  CHECK(nothing.slice(1, 1, huge, 7).unsqueeze(1).dim() == 4);
  CHECK(rill::softmax(nothing, 0).shape() == nothing.shape());
  CHECK(rill::cumsum(nothing, 2).shape() == nothing.shape());
  CHECK(rill::logsumexp(nothing, {2}).shape() == rill::Shape{0, huge});
  CHECK_THROWS_AS(rill::sum(nothing, {0}), rill::Error);
  CHECK_THROWS_AS(rill::mean(nothing, {1, 2}), rill::Error);
}

TEST_CASE("to: converts by C++ rules") {
  CHECK(rill::tensor({1.9, -1.9}).to(rill::int64).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{1, -1});
  CHECK(rill::tensor({0.0, 0.5}).to(rill::boolean).to_vector<bool>() == std::vector<bool>{false, true});
  Tensor x = rill::tensor({1.0f, 2.0f}).set_requires_grad();
  rill::sum(x.to(rill::float64) * rill::tensor({3.0, 4.0})).backward();
  CHECK(x.grad().dtype() == rill::float32);
  CHECK(x.grad().to_vector() == Values{3, 4});
}
