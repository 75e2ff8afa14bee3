/// Sums of many float32 terms of one sign have an error of a few roundings, however many terms there are.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include <rill/core/core.h>
#include <support/same.h>

using rill::Tensor;
using Values = std::vector<double>;

namespace {

/// Uniform in [0.5, 1.5).
Tensor positive(const rill::Shape& shape, std::uint64_t seed) {
  rill::Rng rng(seed);
  return rill::rand(shape, rng) + 0.5;
}

/// The largest relative error of f in float32 against float64, over results and gradients.
double worst_error(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                   const std::vector<Tensor>& inputs) {
  std::vector<std::vector<Values>> all;
  for (const rill::DType dtype : {rill::float32, rill::float64}) {
    std::vector<Tensor> in;
    for (const Tensor& x : inputs)
      in.push_back(rill::is_floating(x.dtype()) ? x.to(dtype).clone().set_requires_grad() : x);
    const Tensor y = f(in);
    if (y.requires_grad()) rill::backward(rill::sum(y));
    std::vector<Values> results{y.to_vector()};
    for (const Tensor& x : in) {
      if (x.grad().defined()) results.push_back(x.grad().to_vector());
    }
    all.push_back(results);
  }
  double worst = 0;
  for (std::size_t k = 0; k < all[0].size(); ++k) {
    for (std::size_t i = 0; i < all[0][k].size(); ++i)
      worst = std::max(worst, std::fabs(all[0][k][i] / all[1][k][i] - 1));
  }
  return worst;
}

constexpr double few_roundings = 1e-6;

}  // namespace

TEST_CASE("long sums: reductions over any dimension") {
  const Tensor tall = positive({300'000, 4}, 1), wide = positive({4, 300'000}, 2),
               cube = positive({60, 5000, 3}, 3);
  for (const auto& f : std::vector<std::function<Tensor(const Tensor&, const rill::Dims&)>>{
           [](const Tensor&x, const rill::Dims&d) { return rill::sum(x, d); },
           [](const Tensor&x, const rill::Dims&d) { return rill::mean(x, d); },
           [](const Tensor&x, const rill::Dims&d) { return rill::norm(x, 2, d); },
           [](const Tensor&x, const rill::Dims&d) { return rill::norm(x, 1, d); },
           [](const Tensor&x, const rill::Dims&d) { return rill::norm(x.detach(), 3, d); },
           [](const Tensor&x, const rill::Dims&d) { return rill::logsumexp(x.detach(), d); }}) {
    for (const Tensor& x : {tall, wide, tall.t(), cube}) {
      for (const rill::Dims& dims : {rill::Dims{0}, rill::Dims{1}, rill::Dims{0, 1}})
        CHECK(worst_error([&](const auto& in) { return f(in[0], dims); }, {x}) < few_roundings);
    }
  }
  // Without gradients, since that of a variance suffers from cancellation.
  for (const rill::Dims& dims : {rill::Dims{0}, rill::Dims{0, 1}})
    CHECK(worst_error([&](const auto& in) { return rill::var(in[0].detach(), dims); }, {tall}) <
          few_roundings);
  CHECK(worst_error([](const auto& in) { return rill::cumsum(in[0], 0); }, {tall}) < few_roundings);
}

TEST_CASE("long sums: gradients of broadcast operands, biases and layer_norm") {
  const Tensor tall = positive({300'000, 3}, 4);
  CHECK(worst_error([&](const auto& in) { return in[0] * in[1]; }, {tall, positive({3}, 5)}) < few_roundings);
  CHECK(worst_error([&](const auto& in) { return in[0] + in[1]; }, {tall, positive({300'000, 1}, 5)}) <
        few_roundings);
  CHECK(worst_error([&](const auto& in) { return in[0] / in[1]; }, {tall, positive({}, 6)}) < few_roundings);
  CHECK(worst_error(
            [&](const auto& in) {
              return rill::expand(in[0], {200'000, 3});
            },
            {positive({1, 3}, 7)}) < few_roundings);
  const Tensor weight = rill::tensor({1.0f, 2.0f, 3.0f, 4.0f}), bias = rill::zeros({4});
  const Tensor x = rill::tensor({1.0f, 2.0f, 4.0f, 5.0f}).expand({300'000, 4});
  const auto normalized = [&](const auto& in) {
    return rill::layer_norm(x.to(in[0].dtype()), {4}, in[0], in[1]);
  };
  CHECK(worst_error(normalized, {weight, bias}) < few_roundings);
}

TEST_CASE("long sums: gradients of rows that an index repeats a million times") {
  const std::int64_t n = 1'000'000;
  std::vector<std::int64_t> ids(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i % 7 == 0 ? 1 : 2;
  const Tensor index = rill::tensor(ids, {n}), rows = positive({3, 2}, 8);
  const Tensor factor = positive({n, 2}, 9);
  const auto weighted = [&](const Tensor& y, const Tensor& like) { return y * factor.to(like.dtype()); };
  CHECK(worst_error([&](const auto& in) { return weighted(rill::embedding(in[0], index), in[0]); }, {rows}) <
        few_roundings);
  CHECK(worst_error([&](const auto& in) { return weighted(rill::index_select(in[0], 0, index), in[0]); },
                    {rows}) < few_roundings);
  // A transposed weight, whose gradient is stored by columns.
  CHECK(worst_error([&](const auto& in) { return weighted(rill::embedding(in[0].t(), index), in[0]); },
                    {positive({2, 3}, 8)}) < few_roundings);
  CHECK(
      worst_error([&](const auto& in) { return rill::index_add(in[0], 0, index, factor.to(in[0].dtype())); },
                  {rows}) < few_roundings);
  const Tensor columns = index.reshape({1, n}).expand({2, n});
  CHECK(worst_error(
            [&](const auto& in) { return rill::gather(in[0], 1, columns) * factor.t().to(in[0].dtype()); },
            {positive({2, 3}, 8)}) < few_roundings);
}

TEST_CASE("long sums: means of losses") {
  const std::int64_t n = 300'000;
  const Tensor x = positive({n, 2}, 10), target = rill::zeros({n}, rill::int64);
  CHECK(worst_error([&](const auto& in) { return rill::mse_loss(in[0], rill::zeros_like(in[0])); }, {x}) <
        few_roundings);
  const auto error = [&](const auto& loss) {
    return worst_error([&](const auto& in) { return loss(in[0]); }, {x});
  };
  CHECK(error([&](const Tensor& t) { return rill::cross_entropy(t.detach(), target); }) < few_roundings);
  CHECK(error([](const Tensor& t) {
          return rill::binary_cross_entropy_with_logits(t, rill::zeros_like(t));
        }) < few_roundings);
}

TEST_CASE("long sums: products with a long inner dimension, in every layout") {
  const std::int64_t k = 300'000;
  const auto product = [](const auto& in) { return rill::matmul(in[0], in[1]); };
  CHECK(worst_error(product, {positive({1, k}, 12), positive({k, 2}, 13)}) < few_roundings);
  CHECK(worst_error(product, {positive({k, 3}, 12).t(), positive({k, 2}, 13)}) < few_roundings);
  CHECK(worst_error(product, {positive({2, k}, 12), positive({20, k}, 13).t()}) < few_roundings);
  CHECK(worst_error(product, {positive({k, 17}, 12).t(), positive({18, k}, 13).t()}) < few_roundings);
  CHECK(worst_error(product, {positive({1, 70'000}, 12), positive({70'000, 40}, 13)}) < few_roundings);
  // Weight and bias gradients of a linear layer over many rows. Rounding errors of equal terms do not cancel.
  const auto layer = [&](const Tensor& x, const auto& in) {
    return rill::linear(x.to(in[0].dtype()), in[0], in[1]) * 0.3;
  };
  const std::vector<Tensor> parameters{positive({1, 2}, 15), positive({1}, 16)};
  const Tensor rows = positive({k, 2}, 14), equal = rill::full({k, 2}, 0.1);
  CHECK(worst_error([&](const auto& in) { return layer(rows, in); }, parameters) < few_roundings);
  CHECK(worst_error([&](const auto& in) { return layer(equal, in); }, parameters) < 1e-5);
}

TEST_CASE("long sums: the same bits for any number of threads, accumulated into a gradient") {
  const Tensor a = positive({70'000, 5}, 17), b = positive({70'000, 33}, 18);
  const auto result = [&] {
    Tensor w = rill::ones({5, 33}).set_requires_grad();
    const Tensor y = rill::matmul(a, w);
    y.backward(b);
    rill::backward(rill::sum(rill::embedding(w, rill::zeros({5000}, rill::int64))));
    return w.grad().to_vector();
  };
  const test::Threads one(1);
  const Values serial = result();
  const test::Threads four(4);
  CHECK(result() == serial);
  CHECK(serial[33] == doctest::Approx(rill::sum(a.select(1, 1) * b.select(1, 0)).item()).epsilon(1e-6));
  CHECK(serial[0] == doctest::Approx(5000 + rill::sum(a.select(1, 0) * b.select(1, 0)).item()).epsilon(1e-6));
}
