#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include <rill/core/core.h>
#include <rill/nn/layers/dropout.h>
#include <support/expect.h>
#include <support/same.h>

using namespace rill;
using test::check_error;
using test::largest_difference;

TEST_CASE("dropout: a fraction p of the elements is 0 and the rest scaled, as is the gradient") {
  Rng rng(1);
  const nn::Dropout layer({.p = 0.3}, rng);
  Tensor x = ones({100, 200});
  x.set_requires_grad();
  const Tensor y = layer(x);
  CHECK(mean(eq(y, 0.0).to(float32)).item() == doctest::Approx(0.3).epsilon(0.05));
  CHECK(amax(y).item() == doctest::Approx(1 / 0.7));
  CHECK(mean(y).item() == doctest::Approx(1).epsilon(0.05));
  sum(y).backward();
  CHECK(largest_difference(x.grad(), y) == 0);
}

TEST_CASE("dropout: calls and layers differ, equal seeds repeat on any number of threads") {
  const Tensor x = ones({300, 300});
  const auto two_calls = [&](int threads) {
    const test::Threads setter(threads);
    Rng rng(1);
    const nn::Dropout first({.p = 0.5}, rng), second({.p = 0.5}, rng);
    return std::vector<Tensor>{first(x), first(x), second(x)};
  };
  const auto one = two_calls(1), four = two_calls(4);
  for (std::size_t i = 0; i < 3; ++i) CHECK(largest_difference(one[i], four[i]) == 0);
  CHECK(largest_difference(one[0], one[1]) > 0);
  CHECK(largest_difference(one[0], one[2]) > 0);
}

TEST_CASE("dropout: counters resume a run exactly, with the stream of the saved layer") {
  const Tensor x = ones({30, 30});
  Rng rng(1), other(2);
  nn::Dropout layer({.p = 0.5}, rng), resumed({.p = 0.5}, other);
  layer(x);
  resumed.load_counters(layer.counters());
  CHECK(largest_difference(layer(x), resumed(x)) == 0);
  CHECK(layer.counters() == resumed.counters());
  CHECK(largest_difference(layer(x), nn::clone(resumed)(x)) == 0);
  CHECK(layer.state_dict().empty());
}

TEST_CASE("dropout: concurrent calls never share a counter value") {
  constexpr int calls = 4000;
  const Tensor x = ones({64});
  Rng one(1), other(1);
  const nn::Dropout shared({.p = 0.5}, one), alone({.p = 0.5}, other);
  const auto draw = [&](const nn::Dropout& layer, int count, std::vector<std::vector<double>>& masks) {
    for (int i = 0; i < count; ++i) masks.push_back(layer(x).to_vector());
  };
  std::vector<std::vector<double>> here, there, expected;
  std::thread thread([&] { draw(shared, calls, there); });
  draw(shared, calls, here);
  thread.join();
  draw(alone, 2 * calls, expected);
  here.insert(here.end(), there.begin(), there.end());
  std::sort(here.begin(), here.end());
  std::sort(expected.begin(), expected.end());
  CHECK(here == expected);
  CHECK(shared.counters() == alone.counters());

  // Calls so short that an increment in two steps would be lost.
  const Tensor nothing = empty({0});
  for (int round = 0; round < 10; ++round) {
    const auto call = [&] {
      for (int i = 0; i < 50000; ++i) shared(nothing);
    };
    std::thread caller(call);
    call();
    caller.join();
  }
  for (const auto& [name, value] : shared.counters()) {
    if (name == "calls") CHECK(value == 2 * calls + 10 * 2 * 50000);
  }
}

TEST_CASE("dropout: eval returns the input itself and counts no call") {
  Rng rng(1);
  nn::Dropout layer({.p = 0.5}, rng);
  const auto before = layer.counters();
  layer.eval();
  const Tensor x = ones({3});
  CHECK(layer(x).ref() == x.ref());
  CHECK(layer.counters() == before);
  check_error([&] { nn::Dropout({.p = -0.1}, rng); }, "Dropout: p -0.1 is outside 0..1");
  check_error([&] { nn::Dropout({.p = NAN}, rng); }, "Dropout: p nan is outside 0..1");
}
