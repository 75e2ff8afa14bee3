#include <doctest/doctest.h>

#include <barrier>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include <rill/core/core.h>

#include <support/threads.h>

using rill::Tensor;

namespace {

Tensor leaf(std::initializer_list<double> values) { return rill::tensor(values).set_requires_grad(); }

/// first + second; its backward function calls `between` after the first gradient and before the second.
Tensor add_with(const Tensor& first, const Tensor& second, std::function<void()> between) {
  return rill::record("add_with", rill::add(first.detach(), second.detach()), {first, second},
                      [between = std::move(between)](const Tensor& dy, rill::Grads& d) {
                        d[0].give(dy);
                        between();
                        d[1].give(dy);
                      });
}

/// Runs two backward passes on two threads that reach a and b in opposite orders. Each waits for the other
/// after its first leaf.
void run_crossed(const Tensor& a, const Tensor& b) {
  std::barrier both(2);
  const auto run = [&](const Tensor& first, const Tensor& second, double factor) {
    rill::sum(rill::mul(add_with(first, second, [&] { both.arrive_and_wait(); }), factor)).backward();
  };
  std::thread other([&] { run(b, a, 3); });
  run(a, b, 2);
  other.join();
}

}  // namespace

TEST_CASE(
    "autograd: concurrent passes that reach the same leaves in opposite orders accumulate both gradients") {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4});
  for (int round = 1; round <= 3; ++round) {
    run_crossed(a, b);
    CHECK(a.grad().to_vector() == std::vector<double>(2, 5 * round));
    CHECK(b.grad().to_vector() == std::vector<double>(2, 5 * round));
  }
}

TEST_CASE("autograd: hooks of a shared leaf see the gradient of each thread's pass separately") {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4});
  std::vector<double> seen;
  a.register_hook([&](const Tensor& gradient) {
    seen.push_back(gradient.to_vector()[0]);
    return rill::mul(gradient, 10);
  });
  run_crossed(a, b);
  CHECK(seen.size() == 2);
  CHECK(seen[0] + seen[1] == 5);
  CHECK(a.grad().to_vector() == std::vector<double>{50, 50});
  CHECK(b.grad().to_vector() == std::vector<double>{5, 5});
}

TEST_CASE("autograd: a nested pass accumulates into leaves that the outer pass has reached") {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4});
  const Tensor inner = rill::sum(rill::mul(a, b));
  rill::sum(add_with(a, b, [&] { inner.backward(); })).backward();
  CHECK(a.grad().to_vector() == std::vector<double>{4, 5});
  CHECK(b.grad().to_vector() == std::vector<double>{2, 3});
}

TEST_CASE("autograd: concurrent passes over one model lose no gradients") {
  const int threads = 3, rounds = 500;
  const Tensor w = rill::full({8, 8}, 2).set_requires_grad();
  const Tensor b = rill::zeros({8}).set_requires_grad();
  const auto train = [&] {
    for (int round = 0; round < rounds; ++round) {
      rill::sum(rill::matmul(rill::ones({4, 8}), w) + b).backward();
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(train);
  train();
  for (std::thread& other : others) other.join();
  CHECK(w.grad().to_vector() == std::vector<double>(64, 4.0 * threads * rounds));
  CHECK(b.grad().to_vector() == std::vector<double>(8, 4.0 * threads * rounds));
}

TEST_CASE(
    "autograd: NoGrad and DetectAnomaly apply to every chunk of a parallel_for, whichever thread runs it") {
  const test::Threads scope(4);
  const Tensor x = leaf({1});
  const Tensor nan = rill::full({1}, std::numeric_limits<double>::quiet_NaN(), rill::float64);
  const auto recorded_chunks = [&] {
    return test::count_on_threads(4, [&] { return rill::mul(x, 2).requires_grad(); });
  };
  const auto throwing_chunks = [&] {
    return test::count_on_threads(4, [&] {
      try {
        rill::mul(nan, x);
        return false;
      } catch (const rill::Error&) {
        return true;
      }
    });
  };
  CHECK(recorded_chunks() == 4);
  CHECK(throwing_chunks() == 0);
  {
    const rill::NoGrad no_grad;
    CHECK(recorded_chunks() == 0);
    const rill::DetectAnomaly anomaly;
    CHECK(throwing_chunks() == 4);
  }
  CHECK(recorded_chunks() == 4);
  CHECK(throwing_chunks() == 0);
}
