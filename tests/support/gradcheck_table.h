/// One table with a row for every op, layer and loss: what the gradient check walks.
#pragma once

#include <string>
#include <vector>

#include <rill/core/gradcheck.h>
#include <rill/core/random.h>

namespace test {

/// A function whose gradient is checked. `op` is the name given to `record`, or a layer's name.
struct GradcheckRow {
  std::string op;
  rill::GradcheckFunction f;
  std::vector<rill::Tensor> inputs;
  rill::GradcheckOptions options = {};
};

/// float64 numbers of a normal distribution that want a gradient.
inline rill::Tensor input(const rill::Shape& shape, std::uint64_t seed) {
  rill::Rng rng(seed);
  return rill::randn(shape, rng, rill::float64).set_requires_grad();
}

/// The same within [lo, hi], uniform.
inline rill::Tensor input_between(const rill::Shape& shape, double lo, double hi, std::uint64_t seed) {
  rill::Rng rng(seed);
  rill::Tensor x = rill::rand(shape, rng, rill::float64);
  x.mul_(hi - lo);
  for (double& v : x.mutable_span<double>()) v += lo;
  return x.set_requires_grad();
}

}  // namespace test
