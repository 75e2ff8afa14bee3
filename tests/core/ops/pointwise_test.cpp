#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include <rill/core/core.h>
#include <rill/core/ops/pointwise.h>
#include <support/threads.h>

using rill::Tensor;

namespace {
Tensor random(const rill::Shape& shape, std::uint64_t seed) {
  rill::Rng rng(seed);
  return rill::randn(shape, rng);
}

/// The thread that called, and whether another one has computed an element.
std::thread::id caller;
std::atomic<bool> helped;

/// a + b; the calling thread waits for a second one, at most 20 seconds.
struct WaitingAdd {
  static constexpr const char* name = "add";
  static constexpr rill::Keeps keeps = rill::Keeps::nothing;
  RILL_INLINE auto forward(auto a, auto b) const {
    if (std::this_thread::get_id() != caller) helped = true;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!helped && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    return a + b;
  }
};
}  // namespace

TEST_CASE("pointwise ops: dense, strided and broadcast loops run on several threads") {
  const test::Threads scope(2);
  const Tensor x = random({300, 300}, 1), row = random({300}, 2), transposed = random({300, 300}, 3).t();
  for (const auto& [a, b] : {std::pair{x, x}, {x, row}, {x, transposed}, {transposed, transposed}}) {
    caller = std::this_thread::get_id();
    helped = false;
    rill::binary(WaitingAdd{}, a, b);
    CHECK(helped);
  }
}

// Sizes at which 4 threads take a chunk each, none of which ends with a vector.
TEST_CASE("pointwise ops: the same bits for any number of threads, dense, strided and broadcast") {
  std::vector<Tensor> leaves{random({397, 411}, 1), random({397, 411}, 2), random({411, 397}, 3),
                             random({411}, 4), random({397, 1}, 5)};
  for (Tensor& leaf : leaves) leaf.set_requires_grad();
  const auto results = [&] {
    const Tensor &x = leaves[0], &y = leaves[1], transposed = leaves[2].t(), &row = leaves[3],
                 &column = leaves[4];
    const std::vector<std::pair<Tensor, Tensor>> pairs{
        {x, y},          {x, row},          {column, x},
        {x, transposed}, {transposed, row}, {x.slice(1, 0, 411, 2), y.narrow(1, 0, 206)}};
    std::vector<std::vector<double>> all;
    Tensor loss = rill::scalar(0);
    for (const auto& [a, b] : pairs) {
      const Tensor z = rill::tanh(a * b) + rill::where(rill::gt(a, b), rill::exp(a), b / 3);
      loss = loss + rill::sum(z * z);
      all.push_back(z.to_vector());
    }
    rill::backward(loss);
    Tensor in_place = leaves[2].detach().clone().t();
    in_place.add_(column.detach());
    all.push_back(in_place.to_vector());
    for (Tensor& leaf : leaves) {
      all.push_back(leaf.grad().to_vector());
      leaf.zero_grad();
    }
    return all;
  };
  const test::Threads one(1);
  const auto serial = results();
  for (const int n : {2, 3, 4}) {
    const test::Threads several(n);
    const auto parallel = results();
    for (std::size_t i = 0; i < serial.size(); ++i) {
      CAPTURE(n);
      CAPTURE(i);
      CHECK(parallel[i] == serial[i]);
    }
  }
}
