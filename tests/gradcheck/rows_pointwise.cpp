#include <rill/core/core.h>

#include <gradcheck/rows.h>

namespace test {

using rill::Tensor;
using Inputs = std::vector<Tensor>;

namespace {

/// Values of alternating sign away from 0, so that no kink lies within a finite-difference step.
Tensor away_from_zero(const rill::Shape& shape, std::uint64_t seed) {
  Tensor x = input_between(shape, 0.2, 1.8, seed).detach();
  bool negative = false;
  for (double& v : x.mutable_span<double>()) {
    if (negative) v = -v;
    negative = !negative;
  }
  return x.set_requires_grad();
}

Tensor positive(const rill::Shape& shape, std::uint64_t seed) { return input_between(shape, 0.3, 2.5, seed); }

template <class F>
GradcheckRow unary_row(const char* op, F f, Tensor x) {
  return {op, [f](const Inputs& in) { return Inputs{f(in[0])}; }, {std::move(x)}};
}

template <class F>
GradcheckRow binary_row(const char* op, F f, Tensor a, Tensor b) {
  return {op, [f](const Inputs& in) { return Inputs{f(in[0], in[1])}; }, {std::move(a), std::move(b)}};
}

}  // namespace

std::vector<GradcheckRow> rows_unary() {
  std::vector<GradcheckRow> rows;
  const auto add = [&](const char* op, auto f, Tensor x) { rows.push_back(unary_row(op, f, std::move(x))); };
  add(
      "neg", [](const Tensor& x) { return rill::neg(x); }, input({2, 3}, 1));
  add(
      "exp", [](const Tensor& x) { return rill::exp(x); }, input({2, 3}, 2));
  add(
      "log", [](const Tensor& x) { return rill::log(x); }, positive({2, 3}, 3));
  add(
      "log1p", [](const Tensor& x) { return rill::log1p(x); }, positive({2, 3}, 4));
  add(
      "sqrt", [](const Tensor& x) { return rill::sqrt(x); }, positive({2, 3}, 5));
  add(
      "rsqrt", [](const Tensor& x) { return rill::rsqrt(x); }, positive({2, 3}, 6));
  add(
      "square", [](const Tensor& x) { return rill::square(x); }, input({2, 3}, 7));
  add(
      "reciprocal", [](const Tensor& x) { return rill::reciprocal(x); }, away_from_zero({2, 3}, 8));
  add(
      "abs", [](const Tensor& x) { return rill::abs(x); }, away_from_zero({2, 3}, 9));
  add(
      "sin", [](const Tensor& x) { return rill::sin(x); }, input({2, 3}, 10));
  add(
      "cos", [](const Tensor& x) { return rill::cos(x); }, input({2, 3}, 11));
  add(
      "erf", [](const Tensor& x) { return rill::erf(x); }, input({2, 3}, 12));
  add(
      "sigmoid", [](const Tensor& x) { return rill::sigmoid(x); }, input({2, 3}, 13));
  add(
      "logsigmoid", [](const Tensor& x) { return rill::logsigmoid(x); }, input({2, 3}, 14));
  add(
      "tanh", [](const Tensor& x) { return rill::tanh(x); }, input({2, 3}, 15));
  add(
      "relu", [](const Tensor& x) { return rill::relu(x); }, away_from_zero({2, 3}, 16));
  add(
      "leaky_relu", [](const Tensor& x) { return rill::leaky_relu(x, 0.1); }, away_from_zero({2, 3}, 17));
  add(
      "silu", [](const Tensor& x) { return rill::silu(x); }, input({2, 3}, 18));
  add(
      "gelu", [](const Tensor& x) { return rill::gelu(x); }, input({2, 3}, 19));
  add(
      "gelu", [](const Tensor& x) { return rill::gelu(x, rill::Approximate::tanh); }, input({2, 3}, 20));
  add(
      "softplus", [](const Tensor& x) { return rill::softplus(x, 2); }, input({2, 3}, 21));
  add(
      "clamp", [](const Tensor& x) { return rill::clamp(x, -1.0, 0.9); }, away_from_zero({2, 5}, 22));
  add(
      "add", [](const Tensor& x) { return x + 1.5; }, input({2, 3}, 23));
  add(
      "sub", [](const Tensor& x) { return x - 1.5; }, input({2, 3}, 23));
  add(
      "mul", [](const Tensor& x) { return 2.5 * x; }, input({2, 3}, 23));
  add(
      "sub", [](const Tensor& x) { return 1.0 - x; }, input({2, 3}, 23));
  add(
      "div", [](const Tensor& x) { return x / 3.0; }, input({2, 3}, 24));
  add(
      "div", [](const Tensor& x) { return 2.0 / x; }, away_from_zero({2, 3}, 25));
  add(
      "pow", [](const Tensor& x) { return rill::pow(x, 1.7); }, positive({2, 3}, 26));
  return rows;
}

std::vector<GradcheckRow> rows_binary() {
  std::vector<GradcheckRow> rows;
  const auto add = [&](const char* op, auto f, auto make) {
    rows.push_back(binary_row(op, f, make({2, 3}, 31), make({2, 3}, 32)));
    rows.push_back(binary_row(op, f, make({2, 3}, 33), make({3}, 34)));
    rows.push_back(binary_row(op, f, make({2, 1}, 35), make({1, 3}, 36)));
    rows.push_back(binary_row(op, f, make({}, 37), make({2, 2, 2}, 38)));
  };
  add(
      "add", [](const Tensor& a, const Tensor& b) { return a + b; }, input);
  add(
      "sub", [](const Tensor& a, const Tensor& b) { return a - b; }, input);
  add(
      "mul", [](const Tensor& a, const Tensor& b) { return a * b; }, input);
  add(
      "div", [](const Tensor& a, const Tensor& b) { return a / b; }, positive);
  add(
      "pow", [](const Tensor& a, const Tensor& b) { return rill::pow(a, b); }, positive);
  add(
      "maximum", [](const Tensor& a, const Tensor& b) { return rill::maximum(a, b); }, positive);
  add(
      "minimum", [](const Tensor& a, const Tensor& b) { return rill::minimum(a, b); }, positive);
  rows.push_back(unary_row(
      "mul", [](const Tensor& x) { return x * x; }, input({3}, 39)));
  return rows;
}

}  // namespace test
