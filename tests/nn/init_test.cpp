#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <rill/core/core.h>
#include <rill/nn/init.h>
#include <rill/nn/layers/linear.h>
#include <rill/nn/recurrent/gru.h>
#include <rill/nn/recurrent/rau.h>
#include <support/expect.h>
#include <support/same.h>

using namespace rill;
using test::check_error;
using test::largest_difference;
namespace init = rill::nn::init;

namespace {

double deviation(const Tensor& w) { return rill::stddev(w.detach().contiguous()).item(); }
double largest(const Tensor& w) { return amax(abs(w.detach())).item(); }

/// Q Qᵀ (or Qᵀ Q, whichever is smaller) against the identity.
double off_orthonormal(const Tensor& q) {
  const Tensor rows = q.size(0) <= q.size(1) ? q : q.t();
  Tensor product = matmul(rows, rows.t());
  double worst = 0;
  const auto values = product.to_vector();
  const std::int64_t n = product.size(0);
  for (std::int64_t i = 0; i < n * n; ++i) {
    worst = std::max(worst, std::abs(values[static_cast<std::size_t>(i)] - (i / n == i % n ? 1.0 : 0.0)));
  }
  return worst;
}

}  // namespace

TEST_CASE("init: constant and uniform fills write every element of a strided view") {
  Rng rng(1);
  for (const DType dtype : {float32, float64}) {
    Tensor storage = zeros({4, 6}, dtype);
    const Tensor view = storage.t().narrow(0, 1, 4);
    init::constant_(view, 3);
    CHECK(sum(storage).item() == 48);
    CHECK(sum(storage.select(1, 0)).item() == 0);
    CHECK(sum(init::ones_(view)).item() == 16);
    CHECK(sum(init::zeros_(view)).item() == 0);
    init::uniform_(view, 1, 2, rng);
    CHECK(amin(view).item() >= 1);
    CHECK(amax(view).item() < 2);
    CHECK(sum(storage.select(1, 5)).item() == 0);
  }
}

TEST_CASE("init: a view and a contiguous tensor of its shape get the same values") {
  Rng a(5), b(5);
  const Tensor view = init::normal_(zeros({6, 4}).t(), 1, 2, a);
  CHECK(largest_difference(view, init::normal_(zeros({4, 6}), 1, 2, b)) == 0);
}

TEST_CASE("init: means and deviations match the formulas") {
  Rng rng(1);
  const Tensor w = zeros({300, 200});
  init::uniform_(w, -2, 4, rng);
  CHECK(mean(w).item() == doctest::Approx(1).epsilon(0.05));
  CHECK(deviation(w) == doctest::Approx(6 / std::sqrt(12.0)).epsilon(0.02));
  init::normal_(w, 3, 0.5, rng);
  CHECK(mean(w).item() == doctest::Approx(3).epsilon(0.02));
  CHECK(deviation(w) == doctest::Approx(0.5).epsilon(0.02));
  init::xavier_uniform_(w, rng, 2);
  CHECK(largest(w) <= 2 * std::sqrt(6.0 / 500));
  CHECK(deviation(w) == doctest::Approx(2 * std::sqrt(2.0 / 500)).epsilon(0.02));
  init::xavier_normal_(w, rng);
  CHECK(deviation(w) == doctest::Approx(std::sqrt(2.0 / 500)).epsilon(0.02));
  init::kaiming_uniform_(w, rng);
  CHECK(largest(w) <= std::sqrt(6.0 / 200));
  CHECK(deviation(w) == doctest::Approx(std::sqrt(2.0 / 200)).epsilon(0.02));
  init::kaiming_normal_(w, rng, {.fan = init::Fan::out, .nonlinearity = init::Nonlinearity::tanh});
  CHECK(deviation(w) == doctest::Approx(5.0 / 3 / std::sqrt(300.0)).epsilon(0.02));
  const Tensor filters = zeros({20, 10, 5, 3});
  init::kaiming_normal_(filters, rng, {.nonlinearity = init::Nonlinearity::linear});
  CHECK(deviation(filters) == doctest::Approx(1 / std::sqrt(150.0)).epsilon(0.05));
  CHECK(init::gain(init::Nonlinearity::leaky_relu, 0.2) == doctest::Approx(std::sqrt(2 / 1.04)));
  CHECK(init::gain(init::Nonlinearity::sigmoid) == 1);
}

TEST_CASE("init: orthogonal matrices of any shape are orthonormal") {
  Rng rng(1);
  for (const Shape& shape : {Shape{5, 5}, Shape{3, 8}, Shape{8, 3}, Shape{1, 4}, Shape{120, 60}}) {
    CAPTURE(shape.size());
    CHECK(off_orthonormal(init::orthogonal_(zeros(shape, float64), rng)) < 1e-13);
    CHECK(off_orthonormal(init::orthogonal_(zeros(shape), rng)) < 1e-5);
  }
  CHECK(off_orthonormal(init::orthogonal_(zeros({6, 9}, float64).t(), rng)) < 1e-13);
  CHECK(off_orthonormal(init::orthogonal_(zeros({4, 2, 3}, float64), rng, 2).reshape({4, 6}) / 2.0) < 1e-13);
  // Uniformly distributed, so entries have mean 0.
  double total = 0;
  for (int i = 0; i < 400; ++i) total += init::orthogonal_(zeros({2, 2}, float64), rng).to_vector()[0];
  CHECK(std::abs(total / 400) < 0.15);
}

TEST_CASE("init: large orthogonal matrices are orthonormal, tall, wide and square") {
  Rng rng(2);
  for (const Shape& shape : {Shape{1024, 1024}, Shape{700, 300}, Shape{300, 700}}) {
    CAPTURE(shape[0]);
    CHECK(off_orthonormal(init::orthogonal_(zeros(shape), rng)) < 1e-5);
  }
  CHECK(off_orthonormal(init::orthogonal_(zeros({400, 400}, float64), rng)) < 1e-12);
}

TEST_CASE("init: orthogonal_ gives Q of a normal matrix, with a positive diagonal of R") {
  Rng rng(3), again(3);
  const Tensor normal = init::normal_(zeros({40, 60}, float64), 0, 1, rng);
  const Tensor q = init::orthogonal_(zeros({40, 60}, float64), again);
  const std::vector<double> r = matmul(normal, q.t()).to_vector();  // normal = R q
  for (std::size_t i = 0; i < 40; ++i) {
    CHECK(r[i * 40 + i] > 0);
    for (std::size_t j = i + 1; j < 40; ++j) CHECK(std::abs(r[i * 40 + j]) < 1e-12);
  }
}

TEST_CASE("init: an orthogonal matrix has the same bits on any number of threads") {
  const auto on_threads = [](int threads) {
    const test::Threads setter(threads);
    Rng rng(4);
    return init::orthogonal_(zeros({500, 600}), rng);
  };
  CHECK(largest_difference(on_threads(1), on_threads(4)) == 0);
}

TEST_CASE("init: a leaf is initialised with the shapes of the parameters that it stores") {
  Rng rng(1);
  const nn::Linear wide({.in_features = 10000, .out_features = 10}, rng);
  init::kaiming_uniform_(wide.parameters()[0], rng);  // stored as [10000, 10]
  CHECK(largest(wide.weight()) <= std::sqrt(6.0 / 10000));
  CHECK(largest(wide.weight()) > 0.99 * std::sqrt(6.0 / 10000));
  const nn::RAUCell cell({.input_size = 7, .hidden_size = 6}, rng);
  init::orthogonal_(cell.parameters()[1], rng);
  for (const char* gate : {"weight_hr", "weight_hz", "weight_hh", "weight_ha"}) {
    CHECK(off_orthonormal(cell.parameter(gate).detach()) < 1e-6);
  }
  Rng one(5), other(5);
  const nn::GRUCell by_leaf({.input_size = 3, .hidden_size = 2}, rng), by_name = nn::clone(by_leaf);
  for (const auto& leaf : by_leaf.parameters()) init::normal_(leaf, 0, 1, one);
  for (const auto& [name, p] : by_name.named_parameters()) init::normal_(p, 0, 1, other);
  for (const auto& [name, p] : by_leaf.named_parameters()) {
    CHECK_MESSAGE(largest_difference(p, by_name.parameter(name)) == 0, name);
  }
}

TEST_CASE("init: parameters that require a gradient can be filled, results of ops cannot") {
  Rng rng(1);
  const nn::Linear layer({.in_features = 3, .out_features = 2}, rng);
  init::xavier_uniform_(layer.weight(), rng);
  init::orthogonal_(layer.parameter("weight"), rng);
  CHECK(off_orthonormal(layer.parameter("weight").detach()) < 1e-6);
  CHECK(layer.parameters()[0].requires_grad());
  check_error([&] { init::normal_(layer.weight() * 2.0, 0, 1, rng); }, "history");
  check_error([&] { init::uniform_(zeros({3}, int64), 0, 1, rng); }, "uniform_: dtype int64 is not floating");
  check_error([&] { init::xavier_normal_(zeros({3}), rng); },
              "xavier_normal_: a tensor of shape [3] has no fans");
  check_error([&] { init::orthogonal_(zeros({3}), rng); }, "orthogonal_: a tensor of shape [3]");
  check_error([&] { init::normal_(zeros({3}), 0, -1, rng); }, "standard deviation -1");
}
