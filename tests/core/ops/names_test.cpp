/// Op names after `using namespace rill` and in messages.
#include <doctest/doctest.h>

#include <cmath>

#include <rill/core/core.h>

using namespace rill;  // under test

TEST_CASE("ops: names shared with the standard library can be called after using namespace rill") {
  const Tensor x = tensor({0.25, 0.5, 1.0}), y = tensor({1.0, 2.0, 4.0});
  CHECK(stddev(y).item() == doctest::Approx(std::sqrt(7.0 / 3)));
  CHECK(mean(stddev(y.reshape({1, 3}), {1})).item() == doctest::Approx(std::sqrt(7.0 / 3)));
  for (const Tensor& t : {exp(x),
                          log(x),
                          log1p(x),
                          sqrt(x),
                          abs(x),
                          sin(x),
                          cos(x),
                          erf(x),
                          tanh(x),
                          pow(x, 2),
                          pow(x, y),
                          clamp(x, 0, 1),
                          max(x, 0).values,
                          min(x, 0).values,
                          sum(x),
                          norm(x),
                          to(x, float32),
                          sub(1, x),
                          div(1, x),
                          select(x, 0, 1),
                          repeat(x, {2}),
                          split(x, 2)[0],
                          empty({2}),
                          flip(x, {0}),
                          where(lt(x, 1), x, y),
                          gather(x, 0, arange(2)),
                          eq(x, y),
                          log_softmax(x, 0)})
    CHECK(t.defined());
}

TEST_CASE("messages: an op has the name that the user called, also in its scalar form") {
  const Tensor n = arange(3);
  const std::string remedy = ": dtype int64 is not floating; use .to(float32) or .to(float64)";
  CHECK_THROWS_WITH_AS(n + 1, ("add" + remedy).c_str(), Error);
  CHECK_THROWS_WITH_AS(n - 1, ("sub" + remedy).c_str(), Error);
  CHECK_THROWS_WITH_AS(1 - n, ("sub" + remedy).c_str(), Error);
  CHECK_THROWS_WITH_AS(n * 2, ("mul" + remedy).c_str(), Error);
  CHECK_THROWS_WITH_AS(n / 2, ("div" + remedy).c_str(), Error);
  CHECK_THROWS_WITH_AS(1 / n, ("div" + remedy).c_str(), Error);
  CHECK_THROWS_WITH_AS(pow(n, 3), ("pow" + remedy).c_str(), Error);
  CHECK_THROWS_WITH_AS(gelu(n, Approximate::tanh), ("gelu" + remedy).c_str(), Error);
  CHECK_THROWS_WITH_AS(chunk(n, 2, 1), "chunk: dimension 1 is outside -1..0", Error);
  CHECK_THROWS_WITH_AS(split(n, 2, 1), "split: dimension 1 is outside -1..0", Error);
}

TEST_CASE("messages: the remedy for mixed dtypes is the one that represents both") {
  const Tensor f = ones({2}), d = ones({2}, float64), n = arange(2), b = zeros({2}, boolean);
  CHECK_THROWS_WITH_AS(f + d, "add: dtypes float32 and float64 differ; use .to(float32) or .to(float64)",
                       Error);
  CHECK_THROWS_WITH_AS(n + f, "add: dtypes int64 and float32 differ; use .to(float32)", Error);
  CHECK_THROWS_WITH_AS(d + n, "add: dtypes float64 and int64 differ; use .to(float64)", Error);
  CHECK_THROWS_WITH_AS(eq(b, n), "eq: dtypes boolean and int64 differ; use .to(int64)", Error);
  CHECK_THROWS_WITH_AS(linear(d, ones({3, 2})), "linear: x is float64, the weight float32; use .to(float32)",
                       Error);
}
