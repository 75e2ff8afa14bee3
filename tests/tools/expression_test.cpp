#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include <parity/expression.h>
#include <rill/core/core.h>

namespace {

using namespace rill;
using parity::Expression;
using parity::Variables;

double number(const std::string& text, Variables variables = {}) {
  return Expression(text).number(variables);
}

Tensor result(const std::string& text, Variables variables) {
  const NamedTensors outputs = Expression(text).evaluate(variables);
  REQUIRE(outputs.size() == 1);
  CHECK(outputs[0].first == "out");
  return outputs[0].second;
}

std::string error(const std::string& text, Variables variables = {}) {
  try {
    Expression(text).evaluate(variables);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void equal(const Tensor& got, const Tensor& want) {
  REQUIRE(got.shape() == want.shape());
  const auto a = got.to_vector(), b = want.to_vector();
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-12));
}

}  // namespace

TEST_CASE("expression: scalars follow the rules of arithmetic") {
  CHECK(number("1 + 2 * 3 - 4 / 8") == 6.5);
  CHECK(number("-2 ** 2") == -4);
  CHECK(number("2 ** -1 ** 2") == 0.5);
  CHECK(number("2 ** 3 ** 2") == 512);
  CHECK(number("10 - 4 - 3") == 3);
  CHECK(number("(7*7919 + 3) % 20011") == (7 * 7919 + 3) % 20011);
  CHECK(number("-7 % 3") == 2);
  CHECK(number("1e-3 * .5") == doctest::Approx(5e-4));
  CHECK(number("1 if 2 > 3 else 5 if 1 <= 1 else 7") == 5);
  CHECK(number("min((k+1)/w, sqrt(w/(k+1)))", {{"k", {8.0}}, {"w", {4.0}}}) == doctest::Approx(2.0 / 3));
  CHECK(number("(1 + cos(pi * k)) / 2", {{"k", {1.0}}}) == doctest::Approx(0));
  CHECK(number("a=2; b=a*a; b+1") == 5);
}

TEST_CASE("expression: graphs of tensors") {
  Rng rng(1);
  const Tensor x = randn({3, 4}, rng, float64), w = randn({4, 4}, rng, float64), b = randn({3}, rng, float64);
  const Variables v{{"x", {x}}, {"w", {w}}, {"b", {b}}};
  equal(result("x*x + x", v), x * x + x);
  equal(result("u=tanh(x); sum(u*exp(u) / (1+u*u))", v),
        sum(tanh(x) * exp(tanh(x)) / (1.0 + square(tanh(x)))));
  equal(result("2 - x / 2 - 1/(x*x+1)", v), 2.0 - x / 2.0 - 1.0 / (x * x + 1.0));
  equal(result("-x ** 2", v), neg(square(x)));
  equal(result("h=x; 3 times h=tanh(h@w + x)", v),
        tanh(matmul(tanh(matmul(tanh(matmul(x, w) + x), w) + x), w) + x));
  equal(result("b + b[:, None] * x[:, 0:3]", v), b + b.unsqueeze(1) * x.narrow(1, 0, 3));
  equal(result("x[1]", v), x.select(0, 1));
  equal(result("x[-1, ::2]", v), x.select(0, -1).slice(0, 0, 4, 2));
  equal(result("y=transpose(x,0,1); cat([y, narrow(y,0,1,2)*3]) summed over dim 0 squared", v),
        square(sum(cat({x.t(), x.t().narrow(0, 1, 2) * 3.0}), {0})));
  equal(result("cat([x, x], -1) summed over dim -1", v), sum(cat({x, x}, 1), {1}));
  equal(result("reshape(x, [4, -1])", v), x.reshape({4, 3}));
  equal(result("x + 0*b is never formed: b gets a zero gradient", v), x * 2.0);
}

TEST_CASE("expression: detach stops the gradient, heads are named results") {
  Rng rng(1);
  Tensor x = randn({3, 3}, rng, float64).set_requires_grad();
  sum(result("x * detach(x*x) + x", {{"x", {x}}})).backward();
  equal(x.grad(), square(x.detach()) + 1.0);
  Variables v{{"x", {x}}};
  const NamedTensors heads = Expression("y=2*x; heads a=y@y, b=sum(x*x); both get a gradient").evaluate(v);
  REQUIRE(heads.size() == 2);
  CHECK(heads[0].first == "a");
  CHECK(heads[1].first == "b");
  equal(heads[0].second.detach(), 4.0 * matmul(x.detach(), x.detach()));
}

TEST_CASE("expression: invalid text is an error that names the column") {
  const Tensor x = ones({2}, float64);
  CHECK(contains(error("x +"), "expected a value at column 4 of 'x +'"));
  CHECK(contains(error("(x", {{"x", {x}}}), "expected ) at column 3"));
  CHECK(contains(error("x $ 2"), "unknown sign '$' at column 3"));
  CHECK(contains(error("x is forever", {{"x", {x}}}), "expected never"));
  CHECK(contains(error("x y", {{"x", {x}}}), "expected ';' or the end at column 3"));
  CHECK(contains(error("z * 2"), "'z' is not known"));
  CHECK(contains(error("frob(x)", {{"x", {x}}}), "there is no function 'frob'"));
  CHECK(contains(error("tanh(x, 1, 2)", {{"x", {x}}}), "takes 1 arguments at most, not 3"));
  CHECK(contains(error("x @ 2", {{"x", {x}}}), "'@' of a tensor and a number"));
  CHECK(contains(error("3"), "the result needs a tensor"));
  CHECK(contains(error("x[]", {{"x", {x}}}), "expected an index"));
  CHECK(contains(error("2.5 times h=x", {{"x", {x}}}), "is not a count"));
  CHECK(contains(error(std::string(1000, '(') + "x"), "nested more than 200 deep"));
  CHECK(contains(error(std::string(1000, '-') + "x"), "nested more than 200 deep"));
}
