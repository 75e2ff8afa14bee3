#include <doctest/doctest.h>

#include <rill/core/core.h>
#include <support/same.h>

using rill::Tensor;
using Values = std::vector<double>;

namespace {

Tensor counting(const rill::Shape& shape) {
  return rill::arange(rill::numel(shape), rill::float64).reshape(shape);
}

Tensor ids(std::initializer_list<std::int64_t> values) { return rill::tensor(values); }
Tensor ids(std::initializer_list<std::int64_t> values, const rill::Shape& shape) {
  return rill::tensor(values, shape);
}

}  // namespace

TEST_CASE("embedding: ids of any shape, accumulated gradients, none for the padding row") {
  Tensor weight = counting({4, 2}).set_requires_grad();
  const Tensor y = rill::embedding(weight, ids({3, 0, 3, 1}, {2, 2}), 0);
  CHECK(y.shape() == rill::Shape{2, 2, 2});
  CHECK(y.to_vector() == Values{6, 7, 0, 1, 6, 7, 2, 3});
  y.backward(rill::tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}, {2, 2, 2}));
  CHECK(weight.grad().to_vector() == Values{0, 0, 7, 8, 0, 0, 6, 8});
  rill::backward(rill::sum(rill::embedding(weight, ids({1}), -4)));  // accumulates
  CHECK(weight.grad().to_vector() == Values{0, 0, 8, 9, 0, 0, 6, 8});
  CHECK(rill::embedding(weight, rill::scalar(2, rill::int64)).to_vector() == Values{4, 5});
  CHECK(rill::embedding(weight, rill::zeros({0, 3}, rill::int64)).shape() == rill::Shape{0, 3, 2});
}

TEST_CASE("embedding: a transposed weight gets its gradient in its own layout") {
  Tensor stored = counting({2, 4}).set_requires_grad();
  const Tensor y = rill::embedding(stored.t(), ids({3, 1, 3}));
  CHECK(y.to_vector() == Values{3, 7, 1, 5, 3, 7});
  rill::backward(rill::sum(y));
  CHECK(stored.grad().to_vector() == Values{0, 1, 0, 2, 0, 1, 0, 2});
}

TEST_CASE("embedding: invalid ids are errors that name index, range and position") {
  const Tensor weight = counting({5, 2});
  CHECK_THROWS_WITH(rill::embedding(weight, ids({0, 1, 7})), "embedding: index 7 is outside 0..4 (row 2)");
  CHECK_THROWS_WITH(rill::embedding(weight, ids({0, -1}, {1, 2})),
                    "embedding: index -1 is outside 0..4 (position [0, 1])");
  CHECK_THROWS_WITH(rill::embedding(weight, rill::tensor({1.0f})),
                    "embedding: indices are float32, not int64; use .to(int64)");
  CHECK_THROWS_WITH(rill::embedding(rill::zeros({0, 2}), ids({0})),
                    "embedding: index 0, but there is nothing to choose from (row 0)");
  CHECK_THROWS_WITH(rill::embedding(weight, ids({0}), 5), "embedding: padding_idx 5 is outside -5..4");
  CHECK_THROWS_WITH(rill::embedding(counting({2}), ids({0})),
                    "embedding: the weight must be [V, E], not [2]");
}

TEST_CASE("embedding: ids changed before the backward pass are an error") {
  Tensor weight = counting({3, 2}).set_requires_grad();
  Tensor rows = ids({0, 1});
  const Tensor y = rill::embedding(weight, rows);
  rows.fill_(2);
  CHECK_THROWS_AS(rill::backward(rill::sum(y)), rill::Error);
}

TEST_CASE("embedding: the same bits for any number of threads") {
  rill::Rng rng(1);
  std::vector<std::int64_t> picks(20'000);
  for (std::int64_t& id : picks) id = static_cast<std::int64_t>(rng.below(50));
  const auto result = [&] {
    rill::Rng same(2);
    Tensor weight = rill::randn({50, 130}, same).set_requires_grad();
    const Tensor y = rill::embedding(weight, rill::tensor(picks, {200, 100}), 7);
    y.backward(rill::randn(y.shape(), same));
    return weight.grad().to_vector();
  };
  const test::Threads one(1);
  const Values serial = result();
  const test::Threads four(4);
  CHECK(result() == serial);
}

TEST_CASE("index_select: along any dimension of any layout") {
  const Tensor x = counting({2, 3, 2});
  CHECK(rill::index_select(x, 1, ids({2, 0, 2})).to_vector() ==
        Values{4, 5, 0, 1, 4, 5, 10, 11, 6, 7, 10, 11});
  CHECK(rill::index_select(x, -1, ids({1})).to_vector() == Values{1, 3, 5, 7, 9, 11});
  CHECK(rill::index_select(x.permute({2, 1, 0}), 0, ids({1, 1})).to_vector() ==
        Values{1, 7, 3, 9, 5, 11, 1, 7, 3, 9, 5, 11});
  CHECK(rill::index_select(x.narrow(1, 1, 2).narrow(2, 1, 1), 1, ids({1, 0})).to_vector() ==
        Values{5, 3, 11, 9});
  CHECK(rill::index_select(x, 0, rill::zeros({0}, rill::int64)).shape() == rill::Shape{0, 3, 2});
  CHECK_THROWS_WITH(rill::index_select(x, 1, ids({0, 3})), "index_select: index 3 is outside 0..2 (row 1)");
  CHECK_THROWS_WITH(rill::index_select(x, 1, ids({0}, {1, 1})),
                    "index_select: the index must be [N], not [1, 1]; use gather or flatten it");
  CHECK_THROWS_AS(rill::index_select(rill::scalar(1), 0, ids({0})), rill::Error);
}

TEST_CASE("gather: picks x[index[i][j]][j], where the index may be smaller than x") {
  const Tensor x = counting({3, 4});
  CHECK(rill::gather(x, 0, ids({2, 0, 1, 2}, {2, 2})).to_vector() == Values{8, 1, 4, 9});
  CHECK(rill::gather(x, 1, ids({3, 3, 0, 1}, {2, 2})).to_vector() == Values{3, 3, 4, 5});
  CHECK(rill::gather(x.t(), 1, ids({2, 1}, {2, 1})).to_vector() == Values{8, 5});
  CHECK(rill::gather(rill::scalar(4), 0, rill::scalar(0, rill::int64)).item() == 4);
  Tensor leaf = counting({2, 3}).set_requires_grad();
  rill::backward(rill::sum(rill::gather(leaf, 1, ids({2, 2, 0, 1}, {2, 2}))));
  CHECK(leaf.grad().to_vector() == Values{0, 0, 2, 1, 1, 0});
  CHECK_THROWS_WITH(rill::gather(x, 0, ids({0, 3}, {1, 2})),
                    "gather: index 3 is outside 0..2 (position [0, 1])");
  CHECK_THROWS_WITH(rill::gather(x, 0, ids({0})), "gather: the index [1] must have the rank of [3, 4]");
  CHECK_THROWS_WITH(rill::gather(x, 0, rill::zeros({1, 5}, rill::int64)),
                    "gather: the index [1, 5] exceeds [3, 4] in dimension 1");
}

TEST_CASE("index_add: repeated indices accumulate, x is unchanged") {
  const Tensor x = rill::ones({2, 3}, rill::float64);
  CHECK(rill::index_add(x, 1, ids({2, 2}), counting({2, 2})).to_vector() == Values{1, 1, 2, 1, 1, 6});
  CHECK(x.to_vector() == Values{1, 1, 1, 1, 1, 1});
  CHECK(rill::index_add(x.t(), 0, ids({0}), counting({1, 2})).to_vector() == Values{1, 2, 1, 1, 1, 1});
  CHECK_THROWS_WITH(rill::index_add(x, 0, ids({0}), counting({2, 3})),
                    "index_add: the source is [2, 3]; 1 entries along dimension 0 of [2, 3] are [1, 3]");
}

TEST_CASE("masked_select: in row-major order, mask or x broadcast") {
  const Tensor x = counting({2, 3});
  CHECK(rill::masked_select(x, rill::gt(x, 2)).to_vector() == Values{3, 4, 5});
  CHECK(rill::masked_select(x.t(), rill::tensor(std::vector<bool>{true, false}, {2})).to_vector() ==
        Values{0, 1, 2});
  CHECK(rill::masked_select(x, rill::lt(x, 0)).shape() == rill::Shape{0});
  Tensor row = counting({3}).set_requires_grad();
  rill::backward(rill::sum(rill::masked_select(row, rill::gt(x, 1))));
  CHECK(row.grad().to_vector() == Values{1, 1, 2});
  CHECK_THROWS_WITH(rill::masked_select(x, x),
                    "masked_select: the mask is float64, not boolean; compare first");
}
