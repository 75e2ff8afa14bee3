/// Rows of the gradient-check table, which covers every op, layer and loss.
#pragma once

#include <string>
#include <vector>

#include <rill/core/gradcheck.h>
#include <rill/core/random.h>

namespace test {

/// A function whose gradient is checked. `op` is the name passed to `record`, or the name of a module.
struct GradcheckRow {
  std::string op;
  rill::GradcheckFunction f;
  std::vector<rill::Tensor> inputs;
  rill::GradcheckOptions options = {};
};

/// A float64 leaf of normal values.
inline rill::Tensor input(const rill::Shape& shape, std::uint64_t seed) {
  rill::Rng rng(seed);
  return rill::randn(shape, rng, rill::float64).set_requires_grad();
}

/// A float64 leaf of uniform values in [lo, hi).
inline rill::Tensor input_between(const rill::Shape& shape, double lo, double hi, std::uint64_t seed) {
  rill::Rng rng(seed);
  rill::Tensor x = rill::rand(shape, rng, rill::float64);
  x.mul_(hi - lo);
  for (double& v : x.mutable_span<double>()) v += lo;
  return x.set_requires_grad();
}

}  // namespace test
