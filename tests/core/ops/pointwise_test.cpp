#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include <rill/core/core.h>
#include <support/threads.h>

using rill::Tensor;

namespace {
Tensor random(const rill::Shape& shape, std::uint64_t seed) {
  rill::Rng rng(seed);
  return rill::randn(shape, rng);
}
}  // namespace

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
