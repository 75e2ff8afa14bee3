#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <rill/core/core.h>

using rill::Tensor;
using Flags = std::vector<bool>;
using Values = std::vector<double>;

namespace {
Tensor counting(const rill::Shape& shape) {
  return rill::arange(rill::numel(shape), rill::float64).reshape(shape);
}
Flags flags(const Tensor& t) { return t.to_vector<bool>(); }
}  // namespace

TEST_CASE("comparisons: every relation, broadcast, of any dtype") {
  const Tensor a = rill::tensor({1.0, 2.0, 3.0});
  const Tensor b = rill::tensor({2.0});
  CHECK(flags(rill::eq(a, b)) == Flags{false, true, false});
  CHECK(flags(rill::ne(a, b)) == Flags{true, false, true});
  CHECK(flags(rill::lt(a, b)) == Flags{true, false, false});
  CHECK(flags(rill::le(a, b)) == Flags{true, true, false});
  CHECK(flags(rill::gt(a, b)) == Flags{false, false, true});
  CHECK(flags(rill::ge(a, b)) == Flags{false, true, true});
  CHECK(rill::eq(counting({2, 1}), counting({3})).shape() == rill::Shape{2, 3});
  CHECK(flags(rill::eq(counting({2, 3}).t(), counting({3, 2}))) ==
        Flags{true, false, false, false, false, true});
  CHECK(flags(rill::lt(rill::tensor<std::int64_t>({1, 5}), rill::tensor<std::int64_t>({2, 5}))) ==
        Flags{true, false});
  CHECK(flags(rill::eq(rill::gt(a, 1), rill::gt(a, 2))) == Flags{true, false, true});
  CHECK(rill::eq(a, b).dtype() == rill::boolean);
  CHECK_THROWS_WITH(rill::eq(a, rill::tensor({1.0f})),
                    "eq: dtypes float64 and float32 differ; use .to(float32) or .to(float64)");
  CHECK_THROWS_AS(rill::lt(counting({2}), counting({3})), rill::Error);
}

TEST_CASE("comparisons: NaN equals nothing, and a scalar is compared exactly") {
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = rill::tensor({not_a_number, 1.0});
  CHECK(flags(rill::eq(x, x)) == Flags{false, true});
  CHECK(flags(rill::ne(x, not_a_number)) == Flags{true, true});
  CHECK(flags(rill::ge(x, 0)) == Flags{false, true});
  // Compared in the tensor's precision, as in PyTorch.
  CHECK(flags(rill::eq(rill::tensor({0.1f}), 0.1)) == Flags{true});
  const std::int64_t large = (std::int64_t{1} << 53) + 1;  // not representable as a double
  CHECK(flags(rill::gt(rill::tensor({large}), 0x1p53)) == Flags{true});
  CHECK(flags(rill::eq(rill::tensor({large}), 0x1p53)) == Flags{false});
  CHECK(flags(rill::lt(rill::tensor<std::int64_t>({2, 3}), 2.5)) == Flags{true, false});
  CHECK(flags(rill::lt(rill::tensor({large}), std::numeric_limits<double>::infinity())) == Flags{true});
  CHECK(flags(rill::eq(rill::gt(x, 0), 1)) == Flags{false, true});
}

TEST_CASE("where: selects elementwise with broadcasting, any dtype") {
  const Tensor mask = rill::tensor(Flags{true, false}, {2, 1});
  CHECK(rill::where(mask, counting({3}), rill::scalar(-1, rill::float64)).to_vector() ==
        Values{0, 1, 2, -1, -1, -1});
  const Tensor n = rill::tensor<std::int64_t>({5, 6});
  CHECK(rill::where(mask.flatten(), n, n).dtype() == rill::int64);
  CHECK(rill::where(rill::tensor(Flags{}, {0, 1}), counting({3}), counting({3})).shape() ==
        rill::Shape{0, 3});
  CHECK_THROWS_WITH(rill::where(n, n, n),
                    "where: the mask is int64, not boolean; compare first, as in ne(x, 0)");
  CHECK_THROWS_AS(rill::where(mask, n, counting({2})), rill::Error);
}

TEST_CASE("where: elements not selected have gradient 0, even if the incoming one is infinite") {
  Tensor a = rill::tensor({1.0, 2.0}).set_requires_grad();
  Tensor b = rill::tensor({3.0}).set_requires_grad();
  const Tensor y = rill::where(rill::tensor(Flags{true, false}, {2}), a, b);
  y.backward(rill::tensor({std::numeric_limits<double>::infinity(), 5.0}));
  CHECK(a.grad().to_vector() == Values{std::numeric_limits<double>::infinity(), 0});
  CHECK(b.grad().to_vector() == Values{5});
}

TEST_CASE("where: a branch whose argument is clamped to its domain gives a finite gradient") {
  // ELU + 1. Without the clamp, the unselected branch e^100 is infinite in float32 and its gradient, 0 · inf,
  // is NaN, as in PyTorch.
  for (const rill::DType dtype : {rill::float32, rill::float64}) {
    Tensor x = rill::tensor({100.0, 0.0, -1.0}).to(dtype).set_requires_grad();
    const Tensor y = rill::where(rill::le(x, 0), rill::exp(rill::clamp(x, {}, 0)), 1 + x);
    rill::backward(rill::sum(y));
    CHECK(y.to_vector()[0] == 101);
    CHECK(x.grad().to_vector()[0] == 1);
    CHECK(x.grad().to_vector()[1] == 1);
    CHECK(x.grad().to_vector()[2] == doctest::Approx(std::exp(-1)));
  }
}

TEST_CASE("masked_fill: fills where the mask, broadcast to x, is true") {
  Tensor x = counting({2, 3}).set_requires_grad();
  const Tensor y = rill::masked_fill(x, rill::tensor(Flags{false, true, false}, {3}), -2.5);
  CHECK(y.to_vector() == Values{0, -2.5, 2, 3, -2.5, 5});
  rill::backward(rill::sum(y));
  CHECK(x.grad().to_vector() == Values{1, 0, 1, 1, 0, 1});
  const Tensor large = rill::zeros({300, 200});
  CHECK(rill::sum(rill::masked_fill(large, rill::eq(large, 0), 1)).item() == 60'000);
  const Tensor n = rill::tensor<std::int64_t>({5, 6});
  CHECK(rill::masked_fill(n, rill::gt(n, 5), 0).to_vector() == Values{5, 0});
  CHECK_THROWS_WITH(rill::masked_fill(n, rill::gt(n, 5), 0.5),
                    "masked_fill: 0.5 is not representable as int64");
  CHECK_THROWS_WITH(rill::masked_fill(counting({3}), rill::tensor(Flags{true, false}, {2, 1}), 0),
                    "masked_fill: the mask [2, 1] does not broadcast to [3]");
}
