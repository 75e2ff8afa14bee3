#include <doctest/doctest.h>

#include <cmath>

#include <rill/core/core.h>
#include <support/same.h>

using rill::Tensor;
using Values = std::vector<double>;

TEST_CASE("dropout: keeps a fraction 1 - p of the elements, scaled, and zeroes the rest") {
  const Tensor x = rill::ones({100, 1000});
  for (const double p : {0.1, 0.5, 0.9}) {
    CAPTURE(p);
    const Tensor y = rill::dropout(x, p, {.seed = 3});
    std::int64_t kept = 0;
    for (const double v : y.to_vector()) {
      CHECK_UNARY((v == 0 || v == static_cast<double>(static_cast<float>(1 / (1 - p)))));
      kept += v != 0;
    }
    CHECK(std::fabs(static_cast<double>(kept) / 1e5 - (1 - p)) < 4 * std::sqrt(p * (1 - p) / 1e5));
  }
}

TEST_CASE("dropout: the mask depends only on the key and the position") {
  const Tensor x = rill::ones({37, 1001});
  const rill::DropoutKey key{.seed = 1, .stream = 2, .call = 3};
  const test::Threads one(1);
  const Values serial = rill::dropout(x, 0.3, key).to_vector();
  const test::Threads four(4);
  CHECK(rill::dropout(x, 0.3, key).to_vector() == serial);
  CHECK(rill::dropout(rill::ones({1001, 37}).t(), 0.3, key).to_vector() == serial);  // in any layout
  const Values first_row = rill::dropout(rill::ones({1001}), 0.3, key).to_vector();
  CHECK(Values(serial.begin(), serial.begin() + 1001) == first_row);
  for (const rill::DropoutKey& other : {rill::DropoutKey{2, 2, 3}, {1, 1, 3}, {1, 2, 4}}) {
    CHECK(rill::dropout(x, 0.3, other).to_vector() != serial);
  }
}

TEST_CASE("dropout: the gradient uses the same mask and accumulates") {
  Tensor x = rill::ones({50, 100}).set_requires_grad();
  const Tensor y = rill::dropout(x, 0.4, {.seed = 9});
  const Values mask = y.to_vector();
  rill::backward(rill::sum(y) + rill::sum(rill::dropout(x, 0.4, {.seed = 9})));
  const Values gradient = x.grad().to_vector();
  for (std::size_t i = 0; i < mask.size(); ++i) CHECK_UNARY(gradient[i] == 2 * mask[i]);
}

TEST_CASE("dropout: p = 0 copies, p = 1 gives zeros, p outside 0..1 is an error") {
  Tensor x = rill::tensor({1.0, 2.0}).set_requires_grad();
  const Tensor all = rill::dropout(x, 0, {});
  CHECK(all.to_vector() == Values{1, 2});
  CHECK(all.op_name() == std::string("dropout"));
  CHECK(all.impl().storage != x.impl().storage);
  const Tensor none = rill::dropout(x, 1, {});
  CHECK(none.to_vector() == Values{0, 0});
  rill::backward(rill::sum(none));
  CHECK(x.grad().to_vector() == Values{0, 0});
  rill::backward(rill::sum(all));
  CHECK(x.grad().to_vector() == Values{1, 1});
  CHECK(rill::dropout(rill::zeros({0, 3}), 0.5, {}).shape() == rill::Shape{0, 3});
  CHECK_THROWS_WITH(rill::dropout(x, 1.5, {}), "dropout: p is 1.5; it must be in 0..1");
  CHECK_THROWS_AS(rill::dropout(x, -0.1, {}), rill::Error);
  CHECK_THROWS_AS(rill::dropout(x, std::nan(""), {}), rill::Error);
}
