#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <rill/core/core.h>
#include <rill/core/ops/stored_weight.h>
#include <support/same.h>

using rill::CrossEntropyOptions;
using rill::Reduction;
using rill::Tensor;
using Tensors = std::vector<Tensor>;
using Values = std::vector<double>;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Reduction reductions[] = {Reduction::none, Reduction::mean, Reduction::sum};

Tensor random(const rill::Shape& shape, std::uint64_t seed, rill::DType dtype = rill::float64) {
  rill::Rng rng(seed);
  return rill::randn(shape, rng, dtype);
}

Tensor random_classes(std::int64_t n, std::int64_t classes, std::uint64_t seed) {
  rill::Rng rng(seed);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(n));
  for (std::int64_t& id : ids) id = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(classes)));
  return rill::tensor(ids, {n});
}

Tensor classes(std::initializer_list<std::int64_t> ids) { return rill::tensor(ids); }

void check_close(const Tensor& got, const Values& want, double tolerance = 1e-9) {
  const Values values = got.to_vector();
  REQUIRE(values.size() == want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    CAPTURE(i);
    CHECK(std::fabs(values[i] - want[i]) <= tolerance);
  }
}

/// PyTorch's formula in plain ops, for scores [N, C].
Tensor plain_cross_entropy(const Tensor& x, const Tensor& target, const CrossEntropyOptions& o) {
  const std::int64_t n = x.size(0), c = x.size(1);
  const Tensor weight = o.weight.defined() ? o.weight.to(x.dtype()) : rill::ones({c}, x.dtype());
  const Tensor counted = o.ignore_index ? rill::ne(target, static_cast<double>(*o.ignore_index)).to(x.dtype())
                                        : rill::ones({n}, x.dtype());
  const Tensor safe = rill::where(rill::ne(counted, 0), target, rill::zeros({n}, rill::int64));
  const Tensor row_weight = rill::index_select(weight, 0, safe) * counted;
  const Tensor minus_log = rill::neg(rill::log_softmax(x, 1));
  const Tensor own = rill::gather(minus_log, 1, safe.unsqueeze(1)).squeeze(1) * row_weight;
  const Tensor every = rill::sum(minus_log * weight, {1}) * counted;
  const Tensor rows = own * (1 - o.label_smoothing) + every * (o.label_smoothing / static_cast<double>(c));
  if (o.reduction == Reduction::none) return rows;
  return o.reduction == Reduction::sum ? rill::sum(rows) : rill::sum(rows) / rill::sum(row_weight);
}

std::vector<CrossEntropyOptions> all_options() {
  std::vector<CrossEntropyOptions> out;
  const Tensor weight = rill::tensor({0.5, 2.0, 1.0, 0.25, 1.5});
  for (const Reduction reduction : reductions) {
    for (const double smoothing : {0.0, 0.1, 1.0}) {
      out.push_back({.label_smoothing = smoothing, .reduction = reduction});
      out.push_back(
          {.weight = weight, .ignore_index = 0, .label_smoothing = smoothing, .reduction = reduction});
    }
    out.push_back({.ignore_index = 0, .reduction = reduction});
    out.push_back({.weight = weight, .reduction = reduction});
  }
  return out;
}

/// The options with class weights in the dtype of x.
CrossEntropyOptions for_dtype(CrossEntropyOptions o, const Tensor& x) {
  if (o.weight.defined()) o.weight = o.weight.to(x.dtype());
  return o;
}

}  // namespace

TEST_CASE("cross_entropy: equals PyTorch's formula for every option, layout and thread count") {
  const Tensor target = classes({3, 0, 1, 4, 0, 2, 2});
  for (const CrossEntropyOptions& o : all_options()) {
    CAPTURE(o.label_smoothing);
    CAPTURE(static_cast<int>(o.reduction));
    test::same(
        [&](const Tensors& in) { return Tensors{rill::cross_entropy(in[0], target, for_dtype(o, in[0]))}; },
        [&](const Tensors& in) { return Tensors{plain_cross_entropy(in[0], target, o)}; },
        {random({7, 5}, 1).set_requires_grad()});
  }
}

TEST_CASE("cross_entropy: more dimensions, one row, and class probabilities") {
  Tensor x = random({2, 5, 3}, 1).set_requires_grad();
  const Tensor target = random_classes(6, 5, 2).reshape({2, 3});
  const Tensor rows = x.permute({0, 2, 1}).reshape({6, 5});
  const Tensor each = rill::cross_entropy(x, target, {.reduction = Reduction::none});
  CHECK(each.shape() == rill::Shape{2, 3});
  check_close(each, plain_cross_entropy(rows, target.flatten(), {.reduction = Reduction::none}).to_vector(),
              1e-14);
  check_close(rill::cross_entropy(rows.select(0, 4), target.flatten().select(0, 4)), {each.to_vector()[4]},
              1e-14);

  // One-hot probabilities equal class targets in value and gradient.
  Tensor one_hot = rill::zeros({6, 5}, rill::float64);
  for (std::int64_t i = 0; i < 6; ++i) {
    one_hot.select(0, i).narrow(0, target.flatten().select(0, i).item<std::int64_t>(), 1).fill_(1);
  }
  for (const Reduction reduction : reductions) {
    for (const double smoothing : {0.0, 0.3}) {
      Tensor a = random({6, 5}, 4).set_requires_grad();
      Tensor b = a.detach().clone().set_requires_grad();
      const CrossEntropyOptions o{.label_smoothing = smoothing, .reduction = reduction};
      const Tensor by_class = rill::cross_entropy(a, target.flatten(), o);
      const Tensor by_probability = rill::cross_entropy(b, one_hot, o);
      check_close(by_probability, by_class.to_vector(), 1e-14);
      rill::backward(rill::sum(by_class));
      rill::backward(rill::sum(by_probability));
      check_close(b.grad(), a.grad().to_vector(), 1e-14);
    }
  }
}

TEST_CASE("cross_entropy: extreme scores are exact, and ignoring every target gives PyTorch's values") {
  for (const rill::DType dtype : {rill::float32, rill::float64}) {
    Tensor x = rill::tensor({1e4, -1e4, 0.0, -1e4, 1e4, 1e4}, {2, 3}).to(dtype).set_requires_grad();
    const Tensor y = rill::cross_entropy(x, classes({1, 2}), {.reduction = Reduction::none});
    check_close(y, {2e4, std::log(2.0)}, 1e-7);
    y.backward(rill::tensor({2.0, 4.0}).to(dtype));
    check_close(x.grad(), {2, -2, 0, 0, 2, -2}, 1e-6);
  }
  Tensor x = random({2, 3}, 1).set_requires_grad();
  const Tensor nothing = classes({-100, -100});
  CHECK(rill::cross_entropy(x, nothing, {.ignore_index = -100, .reduction = Reduction::sum}).item() == 0);
  const Tensor mean = rill::cross_entropy(x, nothing);  // -100 is the default ignore_index
  CHECK(std::isnan(mean.item()));
  rill::backward(mean);
  CHECK(x.grad().to_vector() == Values(6, 0.0));
  CHECK(std::isnan(rill::cross_entropy(rill::zeros({0, 3}), rill::zeros({0}, rill::int64)).item()));
  CHECK(rill::cross_entropy(rill::tensor({-infinity, 0.0}), rill::scalar(1, rill::int64)).item() == 0);
}

TEST_CASE("losses over classes: a mean over targets of weight 0 is NaN with gradient 0") {
  const Tensor target = classes({1, 1});
  for (const rill::DType dtype : {rill::float32, rill::float64}) {
    const Tensor weight = rill::tensor({1.0, 0.0, 2.0}).to(dtype);
    const auto check_zero = [&](const auto& loss) {
      Tensor x = random({2, 3}, 1, dtype).set_requires_grad();
      const Tensor y = loss(x);
      CHECK(std::isnan(y.item()));
      rill::backward(y);
      CHECK(x.grad().to_vector() == Values(6, 0.0));
    };
    check_zero([&](const Tensor& x) { return rill::cross_entropy(x, target, {.weight = weight}); });
    check_zero([&](const Tensor& x) { return rill::nll_loss(x, target, {.weight = weight}); });
    check_zero([&](const Tensor& x) {
      return rill::cross_entropy(x, classes({-100, 1}), {.weight = weight});
    });
    check_zero([&](const Tensor& x) {
      return rill::linear_cross_entropy(x, rill::ones({3, 3}, dtype), Tensor(), target, {.weight = weight});
    });
  }
}

TEST_CASE("losses over classes: invalid targets and options are errors that name them") {
  const Tensor x = rill::zeros({3, 5});
  CHECK_THROWS_WITH(rill::cross_entropy(x, classes({0, 1, 7})),
                    "cross_entropy: target 7 at row 2 is outside 0..4; set ignore_index to skip it");
  CHECK_THROWS_WITH(rill::nll_loss(x, classes({0, -1, 1})),
                    "nll_loss: target -1 at row 1 is outside 0..4; set ignore_index to skip it");
  CHECK_THROWS_WITH(rill::cross_entropy(x, classes({0, 1})),
                    "cross_entropy: scores of shape [3, 5] need targets of shape [3], not [2]");
  CHECK_THROWS_WITH(rill::cross_entropy(x, rill::zeros({3}, rill::boolean)),
                    "cross_entropy: class targets are boolean, not int64; use .to(int64)");
  CHECK_THROWS_WITH(rill::cross_entropy(x, classes({0, 1, 2}), {.weight = rill::ones({4})}),
                    "cross_entropy: the class weights are [4]; 5 classes need [5]");
  CHECK_THROWS_WITH(rill::cross_entropy(x, classes({0, 1, 2}), {.weight = rill::ones({5}, rill::float64)}),
                    "cross_entropy: the class weights are float64, the scores float32; use .to(float32)");
  CHECK_THROWS_WITH(rill::cross_entropy(x, rill::zeros({3, 5}), {.weight = rill::ones({5}, rill::float64)}),
                    "cross_entropy: the class weights are float64, the scores float32; use .to(float32)");
  CHECK_THROWS_WITH(rill::cross_entropy(x, classes({0, 1, 2}), {.label_smoothing = 1.5}),
                    "cross_entropy: label_smoothing is 1.5; it must be in 0..1");
  CHECK_THROWS_WITH(rill::cross_entropy(x, rill::zeros({3, 4})),
                    "cross_entropy: probabilities [3, 4] must have the shape of the scores, [3, 5]");
  CHECK_THROWS_WITH(
      rill::linear_cross_entropy(rill::zeros({3, 2}), rill::zeros({5, 3}), Tensor(), classes({0, 1, 2})),
      "linear_cross_entropy: x [N, in] and weight [V, in] do not fit: [3, 2] and [5, 3]");
  CHECK_THROWS_WITH(
      rill::linear_cross_entropy(rill::zeros({3, 2}), rill::zeros({5, 2}), Tensor(), classes({0, 9, 2})),
      "linear_cross_entropy: target 9 at row 1 is outside 0..4; set ignore_index to skip it");
}

TEST_CASE("nll_loss: equals its definition in every layout") {
  const Tensor target = classes({3, 0, 1, 4, 0, 2, 2});
  const Tensor weight = rill::tensor({0.5, 2.0, 1.0, 0.25, 1.5});
  for (const Reduction reduction : reductions) {
    test::same(
        [&](const Tensors& in) {
          return Tensors{rill::nll_loss(
              in[0], target,
              {.weight = weight.to(in[0].dtype()), .ignore_index = 0, .reduction = reduction})};
        },
        [&](const Tensors& in) {
          const Tensor row_weight = rill::tensor({0.25, 0.0, 2.0, 1.5, 0.0, 1.0, 1.0}).to(in[0].dtype());
          const Tensor rows = rill::neg(rill::gather(in[0], 1, target.unsqueeze(1)).squeeze(1)) * row_weight;
          if (reduction == Reduction::none) return Tensors{rows};
          return Tensors{reduction == Reduction::sum ? rill::sum(rows) : rill::sum(rows) / 5.75};
        },
        {random({7, 5}, 1).set_requires_grad()});
  }
}

TEST_CASE("mse_loss: equals its definition, with gradients for both arguments") {
  for (const Reduction reduction : reductions) {
    test::same([=](const Tensors& in) { return Tensors{rill::mse_loss(in[0], in[1], reduction)}; },
               [=](const Tensors& in) {
                 const Tensor each = rill::square(in[0] - in[1]);
                 if (reduction == Reduction::none) return Tensors{each};
                 return Tensors{reduction == Reduction::sum ? rill::sum(each) : rill::mean(each)};
               },
               {random({3, 4}, 1).set_requires_grad(), random({3, 4}, 2).set_requires_grad()});
  }
  CHECK(std::isnan(rill::mse_loss(rill::zeros({0}), rill::zeros({0})).item()));
}

TEST_CASE("pointwise losses: differing shapes and dtypes are errors, without broadcasting") {
  for (const Reduction reduction : reductions) {
    CHECK_THROWS_WITH_AS(rill::mse_loss(rill::zeros({3, 1}), rill::zeros({3}), reduction),
                         "mse_loss: x is [3, 1], the target [3]; use reshape, unsqueeze or expand on one",
                         rill::Error);
    CHECK_THROWS_WITH_AS(
        rill::binary_cross_entropy_with_logits(rill::zeros({3, 1}), rill::zeros({3}), reduction),
        "binary_cross_entropy_with_logits: x is [3, 1], the target [3]; use reshape, unsqueeze or expand on "
        "one",
        rill::Error);
  }
  CHECK_THROWS_WITH_AS(rill::mse_loss(rill::zeros({2}), rill::zeros({2}, rill::float64)),
                       "mse_loss: x is float32, the target float64; use .to(float32)", rill::Error);
}

TEST_CASE("binary_cross_entropy_with_logits: accurate and finite at extremes") {
  for (const rill::DType dtype : {rill::float32, rill::float64}) {
    Tensor wide = rill::tensor({1e4, -1e4, 30.0}).to(dtype).set_requires_grad();
    const Tensor y = rill::binary_cross_entropy_with_logits(wide, rill::tensor({0.0, 0.0, 1.0}).to(dtype),
                                                            Reduction::none);
    CHECK(y.to_vector()[0] == 1e4);
    CHECK(y.to_vector()[1] == 0);
    CHECK(y.to_vector()[2] == doctest::Approx(std::exp(-30.0)).epsilon(1e-6));
    rill::backward(rill::sum(y));
    CHECK(wide.grad().to_vector()[0] == 1);
    CHECK(wide.grad().to_vector()[1] == doctest::Approx(0));
  }
}

TEST_CASE("linear_cross_entropy: equals cross_entropy of linear for every option and layout") {
  const Tensor target = classes({3, 0, 1, 4, 0, 2, 2});
  for (const CrossEntropyOptions& o : all_options()) {
    CAPTURE(o.label_smoothing);
    CAPTURE(static_cast<int>(o.reduction));
    const auto composed = [&](const Tensors& in) {
      return Tensors{rill::cross_entropy(rill::linear(in[0], in[1], in[2]), target, for_dtype(o, in[0])) * 3};
    };
    const auto blockwise = [&](const Tensors& in) {
      return Tensors{rill::linear_cross_entropy(in[0], in[1], in[2], target, for_dtype(o, in[0])) * 3};
    };
    test::same(blockwise, composed,
               {random({7, 3}, 1).set_requires_grad(), random({5, 3}, 2).set_requires_grad(),
                random({5}, 3).set_requires_grad()});
  }
}

TEST_CASE("linear_cross_entropy: many blocks of rows, in both layouts of the weight") {
  // float64 scores of 40,000 classes: blocks of 256 rows.
  const std::int64_t rows = 600, in = 5, outs = 40'000;
  const Tensor target = random_classes(rows, outs, 4);
  for (const bool transposed : {false, true}) {
    CAPTURE(transposed);
    Tensor x = random({rows, in}, 1).set_requires_grad();
    Tensor stored = random(transposed ? rill::Shape{in, outs} : rill::Shape{outs, in}, 2).set_requires_grad();
    Tensor bias = random({outs}, 3).set_requires_grad();
    const auto gradients = [&](bool blockwise) {
      for (Tensor* t : {&x, &stored, &bias}) t->zero_grad();
      const Tensor weight = transposed ? stored.t() : stored;
      const CrossEntropyOptions o{.ignore_index = 7};
      const Tensor y = blockwise ? rill::linear_cross_entropy(x, weight, bias, target, o)
                                 : rill::cross_entropy(rill::linear(x, weight, bias), target, o);
      rill::backward(y);
      return Tensors{y, x.grad(), stored.grad(), bias.grad()};
    };
    const Tensors want = gradients(false);
    const Tensors got = gradients(true);
    for (std::size_t i = 0; i < want.size(); ++i) {
      CHECK(rill::amax(rill::abs(got[i].detach() - want[i].detach())).item() < 1e-12);
    }
  }
}

TEST_CASE("linear_cross_entropy: a weight stored as [in, out] gets its gradient in that layout") {
  const Tensor target = classes({1, 0, 3});
  const Tensor x = random({3, 2}, 1);
  Tensor stored = random({2, 4}, 2).set_requires_grad();  // [in, V], as layers store it
  const rill::StoredWeight weight{stored};
  Tensor plain = stored.detach().t().contiguous().set_requires_grad();
  rill::backward(rill::linear_cross_entropy(x, plain, Tensor(), target) * 3);
  const Tensor want = plain.grad().t();
  for (const int times : {1, 2}) {  // the second pass accumulates
    rill::backward(rill::linear_cross_entropy(x, weight, Tensor(), target) * 3);
    check_close(stored.grad(), (want * times).to_vector(), 1e-14);
  }
  // Used twice in one graph, as a tied weight.
  stored.zero_grad();
  rill::backward((rill::linear_cross_entropy(x, weight, Tensor(), target) +
                  rill::linear_cross_entropy(x, weight, Tensor(), target)) *
                 3);
  check_close(stored.grad(), (want * 2).to_vector(), 1e-14);
}

TEST_CASE("linear_cross_entropy: the same bits for any number of threads, and a graph run twice") {
  const auto result = [] {
    Tensor x = random({300, 64}, 1, rill::float32).set_requires_grad();
    Tensor weight = random({3000, 64}, 2, rill::float32).set_requires_grad();
    Tensor bias = random({3000}, 3, rill::float32).set_requires_grad();
    const Tensor y = rill::linear_cross_entropy(x, weight, bias, random_classes(300, 3000, 4)) * 0.5;
    rill::backward(y, {.retain_graph = true});
    const Values once = weight.grad().to_vector();
    rill::backward(y);
    const Values twice = weight.grad().to_vector();
    for (std::size_t i = 0; i < once.size(); ++i) CHECK_UNARY(twice[i] == 2 * once[i]);
    Values all = x.grad().to_vector();
    all.insert(all.end(), once.begin(), once.end());
    all.push_back(y.item());
    return all;
  };
  const test::Threads one(1);
  const Values serial = result();
  const test::Threads four(4);
  CHECK(result() == serial);
}

TEST_CASE("linear_cross_entropy: all targets ignored, no rows, gradients disabled") {
  Tensor x = random({2, 3}, 1).set_requires_grad();
  Tensor weight = random({4, 3}, 2).set_requires_grad();
  const Tensor sum = rill::linear_cross_entropy(x, weight, Tensor(), classes({9, 9}),
                                                {.ignore_index = 9, .reduction = Reduction::sum});
  CHECK(sum.item() == 0);
  rill::backward(sum);
  CHECK(x.grad().to_vector() == Values(6, 0.0));
  CHECK(weight.grad().to_vector() == Values(12, 0.0));
  CHECK(std::isnan(rill::linear_cross_entropy(rill::zeros({0, 3}), rill::zeros({4, 3}), Tensor(),
                                              rill::zeros({0}, rill::int64))
                       .item()));
  const rill::NoGrad no_grad;
  const Tensor y = rill::linear_cross_entropy(x, weight, Tensor(), classes({1, 2}));
  CHECK_FALSE(y.requires_grad());
  check_close(y, {rill::cross_entropy(rill::linear(x, weight), classes({1, 2})).item()}, 1e-14);
}
