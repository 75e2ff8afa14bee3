#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include <rill/core/core.h>

using rill::Tensor;

TEST_CASE("tensor: factories give the stated values and dtypes") {
  CHECK(rill::zeros({2, 3}).to_vector() == std::vector<double>(6, 0));
  CHECK(rill::full({2}, 1.5, rill::float64).to_vector() == std::vector<double>{1.5, 1.5});
  CHECK(rill::arange(4).to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(rill::arange(4).dtype() == rill::int64);
  CHECK(rill::ones({}).item() == 1);
  CHECK(rill::tensor({true, false}).dtype() == rill::boolean);
  CHECK(rill::tensor(std::vector<bool>{true, false, true}, {3}).to_vector<bool>() ==
        std::vector<bool>{true, false, true});
  CHECK(rill::tensor({1, 2, 3}).dtype() == rill::int64);
  CHECK(rill::tensor(std::vector<unsigned>{7, 8}, {2}).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{7, 8});
  CHECK(rill::tensor({1.0f, 2.0f}, {2, 1}).shape() == rill::Shape{2, 1});
  CHECK_THROWS_WITH(rill::tensor({1.0f, 2.0f}, {3}),
                    "tensor: 2 elements do not match shape [3] of 3 elements");
}

TEST_CASE("tensor: a braced list may mix types, and the widest sets the dtype") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const Tensor mixed = rill::tensor({0.0, -inf});
  CHECK(mixed.dtype() == rill::float64);
  CHECK(mixed.to_vector() == std::vector<double>{0, -HUGE_VAL});
  CHECK(rill::tensor({0.0F, -inf}, {2, 1}).dtype() == rill::float32);
  CHECK(rill::tensor({1, 2.5F}).dtype() == rill::float32);
  CHECK(rill::tensor({1, 2.5}, {2}).to_vector() == std::vector<double>{1, 2.5});
  const std::int64_t exact = (std::int64_t{1} << 53) + 1;
  CHECK(rill::tensor({exact, 2}).to_vector<std::int64_t>() == std::vector<std::int64_t>{exact, 2});
  CHECK(rill::tensor({2U, 1}).dtype() == rill::int64);
  CHECK(rill::tensor<float>({1, 2}).dtype() == rill::float32);
  CHECK(rill::tensor<bool>({true, false}, {2, 1}).dtype() == rill::boolean);
  CHECK(rill::tensor({true, 2}).to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 2});
  CHECK(rill::tensor({}, {0, 3}).dtype() == rill::float32);
  CHECK_THROWS_WITH(rill::tensor({std::numeric_limits<std::uint64_t>::max()}),
                    "tensor: 18446744073709551615 is not representable as int64");
}

TEST_CASE("tensor: construction from vectors, arrays and spans") {
  const std::vector<float> list{1, 2, 3, 4};
  CHECK(rill::tensor(list).shape() == rill::Shape{4});
  CHECK(rill::tensor(std::span(list).first(2), {2, 1}).to_vector() == std::vector<double>{1, 2});
  CHECK(rill::tensor(std::array{1, 2, 3}).dtype() == rill::int64);
  CHECK(rill::tensor(std::array{true, false}).dtype() == rill::boolean);
  CHECK(rill::tensor(std::vector<bool>{true, false}).shape() == rill::Shape{2});
  const double plain[] = {1, 2};
  CHECK(rill::tensor(plain, {2, 1}).dtype() == rill::float64);
  std::array<double, 2> writable{1, 2};
  CHECK(rill::tensor(std::span(writable)).dtype() == rill::float64);
  CHECK(rill::tensor(rill::zeros({2, 3}).shape()).to_vector() == std::vector<double>{2, 3});
}

static_assert(!std::is_convertible_v<const char*, rill::detail::Literal>);

TEST_CASE("tensor: a value that the dtype cannot represent is an error, and conversion is defined for all") {
  CHECK_THROWS_WITH(rill::full({2}, 0.5, rill::int64), "full: 0.5 is not representable as int64");
  CHECK_THROWS_WITH(rill::full({2}, 1e300, rill::int64), "full: 1e+300 is not representable as int64");
  CHECK_THROWS_WITH(rill::arange(2).fill_(std::nan("")), "fill_: nan is not representable as int64");
  CHECK(rill::full({1}, -0x1p62, rill::int64).item<std::int64_t>() == -(std::int64_t{1} << 62));
  constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
  const Tensor odd = rill::tensor({1e300, std::nan(""), -1e300, -0x1p63, 0x1p63, -2.9, 2.9});
  const std::vector<std::int64_t> whole{smallest, smallest, smallest, smallest, smallest, -2, 2};
  CHECK(odd.to(rill::int64).to_vector<std::int64_t>() == whole);
  CHECK(odd.to_vector<std::int64_t>() == whole);
  CHECK(rill::scalar(3e10).item<int>() == std::numeric_limits<int>::min());
}

TEST_CASE("tensor: copies share data and clones do not") {
  Tensor a = rill::zeros({3});
  Tensor b = a, c = a.clone();
  a.fill_(2);
  CHECK(b.to_vector() == std::vector<double>{2, 2, 2});
  CHECK(c.to_vector() == std::vector<double>{0, 0, 0});
}

TEST_CASE("tensor: access is checked") {
  Tensor a = rill::zeros({2, 2});
  CHECK_THROWS_WITH(a.data<double>(), "data: the tensor is float32, not float64; use .to(float64)");
  CHECK_THROWS_WITH(a.t().span<float>(),
                    "span: a view of shape [2, 2] with strides [1, 2] is not contiguous; use .contiguous()");
  CHECK_THROWS_WITH(a.item(), "item: a tensor of shape [2, 2] has 4 elements; index it first");
  CHECK_THROWS_WITH(a.size(2), "size: dimension 2 is outside -2..1");
  CHECK_THROWS_WITH(a.size(-3), "size: dimension -3 is outside -2..1");
  CHECK_THROWS_AS(Tensor().shape(), rill::Error);
}

TEST_CASE("tensor: a scalar has no dimension with a size") {
  CHECK_THROWS_WITH(rill::arange(5).select(0, 2).size(0),
                    "size: dimension 0 of a tensor without dimensions; use unsqueeze(0) to add one");
  CHECK_THROWS_AS(rill::scalar(1).size(-1), rill::Error);
  CHECK_THROWS_AS(rill::scalar(1).stride(0), rill::Error);
  CHECK_THROWS_AS(rill::scalar(1).shape()[0], rill::Error);
  const Tensor x = rill::scalar(2);
  CHECK(rill::sum(x, {0}).item() == 2);  // as a dim argument, 0 or -1 is valid for a scalar
  CHECK(x.transpose(0, -1).shape() == rill::Shape{});
  CHECK(x.squeeze(0).shape() == rill::Shape{});
  CHECK(x.flatten().shape() == rill::Shape{1});
}

TEST_CASE("shape: negative indices count from the end, and access is bounds-checked") {
  const Tensor x = rill::zeros({2, 3, 4});
  CHECK(x.shape()[-1] == 4);
  CHECK(x.strides()[-3] == 12);
  CHECK(x.shape().back() == 4);
  CHECK_THROWS_WITH(x.shape()[5], "shape: index 5 is out of range for [2, 3, 4], which has 3 dimensions");
  CHECK_THROWS_AS(x.shape()[-4], rill::Error);
  CHECK_THROWS_AS(rill::Shape{}.back(), rill::Error);
  rill::Shape s{2, 3};
  CHECK_THROWS_AS(s[2] = 1, rill::Error);
  CHECK_THROWS_AS(s.erase(2), rill::Error);
  CHECK_THROWS_AS(s.insert(3, 1), rill::Error);
  CHECK(s == rill::Shape{2, 3});
  s.insert(1, 7);
  s.insert(3, 9);
  s.insert(0, 5);
  CHECK(s == rill::Shape{5, 2, 7, 3, 9});
  s.erase(0);
  s.erase(3);
  CHECK(s == rill::Shape{2, 7, 3});
}

TEST_CASE("tensor: mutable access bumps the version that views share, reading does not") {
  Tensor x = rill::tensor({1.0, 2.0, 3.0, 4.0}, {2, 2});
  const auto version = [&] { return x.impl().storage->version(); };
  const auto before = version();
  const double* const first = x.data<double>();
  CHECK(first == x.span<double>().data());
  CHECK(x.select(0, 1).data<double>() == first + 2);
  CHECK(version() == before);
  x.mutable_data<double>()[1] = 5;
  CHECK(version() == before + 1);
  x.mutable_span<double>()[2] = 6;
  CHECK(version() == before + 2);
  x.select(0, 1).mutable_data<double>()[1] = 7;
  CHECK(version() == before + 3);
  CHECK(x.to_vector() == std::vector<double>{1, 5, 6, 7});
  CHECK_THROWS_WITH(x.t().mutable_span<double>(), doctest::Contains("is not contiguous"));
  CHECK_THROWS_WITH(x.mutable_data<float>(), doctest::Contains("not float32"));
}

static_assert(std::is_same_v<decltype(std::declval<Tensor&>().data<float>()), const float*>);
static_assert(std::is_same_v<decltype(std::declval<Tensor&>().span<float>()), std::span<const float>>);
static_assert(std::is_copy_assignable_v<Tensor> && std::is_nothrow_move_assignable_v<Tensor>);
static_assert(!std::is_assignable_v<Tensor, const Tensor&> && !std::is_assignable_v<Tensor, Tensor>,
              "x.select(0, 0) = y would change no element");
static_assert(!std::is_assignable_v<decltype(std::declval<rill::Tensor>().grad()), Tensor>);

TEST_CASE("tensor: sizes that overflow or are negative are errors") {
  CHECK_THROWS_AS(rill::empty({-1}), rill::Error);
  CHECK_THROWS_AS(rill::empty({std::int64_t{1} << 40, std::int64_t{1} << 40}), rill::Error);
  CHECK_THROWS_AS(rill::empty({std::int64_t{1} << 62}, rill::float64), rill::Error);
  CHECK_THROWS_AS(rill::empty({1, 1, 1, 1, 1, 1, 1, 1, 1}), rill::Error);
  CHECK(rill::empty({0, std::int64_t{1} << 62, 8}).numel() == 0);
}

TEST_CASE("tensor: copy_ broadcasts, converts and handles overlap") {
  Tensor a = rill::zeros({2, 3}, rill::float64);
  a.copy_(rill::tensor({1.0f, 2.0f, 3.0f}));
  CHECK(a.to_vector() == std::vector<double>{1, 2, 3, 1, 2, 3});
  Tensor square = rill::tensor({1.0, 2.0, 3.0, 4.0}, {2, 2});
  square.copy_(square.t());
  CHECK(square.to_vector() == std::vector<double>{1, 3, 2, 4});
  square.add_(square.t(), 2);
  CHECK(square.to_vector() == std::vector<double>{3, 7, 8, 12});
  CHECK_THROWS_WITH(rill::zeros({2}).copy_(rill::zeros({3})),
                    doctest::Contains("shapes [2] and [3] do not broadcast"));
}

TEST_CASE("tensor: in-place ops reject tensors with history") {
  Tensor w = rill::ones({2}).set_requires_grad();
  CHECK_THROWS_WITH(w.fill_(0), doctest::Contains("use NoGrad"));
  Tensor y = w * 2.0;
  CHECK_THROWS_WITH(y.add_(w), doctest::Contains("result of 'mul'"));
  Tensor data = rill::zeros({2});
  CHECK_THROWS_WITH(data.copy_(w * 2.0),
                    "copy_: the source of shape [2] wants a gradient, which copy_ does not "
                    "record; use cat, where or +, or its detach()");
  CHECK_THROWS_AS(data.add_(w), rill::Error);
  CHECK(data.copy_(w.detach()).to_vector() == std::vector<double>{1, 1});
  const rill::NoGrad no_grad;
  CHECK(data.add_(w).to_vector() == std::vector<double>{2, 2});
  CHECK(w.fill_(3).to_vector() == std::vector<double>{3, 3});
}

TEST_CASE("tensor: in-place ops reject expanded tensors") {
  rill::Tensor wide = rill::zeros({1, 2}).expand({3, 2});
  const char* message =
      "add_: several elements of shape [3, 2] with strides [0, 1] are one place in memory; change a clone()";
  CHECK_THROWS_WITH(wide.add_(rill::ones({3, 2})), message);
  CHECK_THROWS_AS(wide.mul_(2), rill::Error);
  CHECK_THROWS_AS(wide.fill_(2), rill::Error);
}

TEST_CASE("tensor: a leaf must be contiguous") {
  Tensor base = rill::zeros({5, 9});
  CHECK_THROWS_WITH(base.narrow(1, 0, 4).set_requires_grad(),
                    "set_requires_grad: a view of shape [5, 4] with strides [9, 1] is not contiguous; "
                    "use .clone(), or call it on the base tensor");
  CHECK_THROWS_AS(base.t().set_requires_grad(), rill::Error);
  CHECK_FALSE(base.t().set_requires_grad(false).requires_grad());
  CHECK(base.narrow(0, 1, 2).set_requires_grad().requires_grad());
}

TEST_CASE("tensor: set_grad takes a copy") {
  rill::Tensor x = rill::ones({2}).set_requires_grad();
  const rill::Tensor given = rill::ones({2});
  x.set_grad(given);
  rill::sum(x).backward();
  CHECK(x.grad().to_vector() == std::vector<double>{2, 2});
  CHECK(given.to_vector() == std::vector<double>{1, 1});
}

TEST_CASE("tensor: prints values, dtype and shape") {
  CHECK(rill::to_string(rill::tensor({1.0f, 2.5f}, {2, 1})) == "[[1], [2.5]] float32 [2, 1]");
  CHECK(rill::to_string(rill::arange(9)) == "[0, 1, 2, ..., 6, 7, 8] int64 [9]");
  CHECK(fmt::format("{}", rill::scalar(3)) == "3 float32 []");
}
