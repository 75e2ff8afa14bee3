/// Helpers of the optimiser tests: one optimiser of each kind, leaves, steps with random gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <rill/core/random.h>
#include <rill/optim/optim.h>

namespace test {

using rill::DType;
using rill::NamedTensors;
using rill::Rng;
using rill::Shape;
using rill::Tensor;
namespace optim = rill::optim;

inline Tensor leaf(const Shape& shape, std::uint64_t seed, DType dtype = rill::float32) {
  Rng rng(seed);
  return randn(shape, rng, dtype).set_requires_grad();
}

/// A named factory of optimisers.
struct Kind {
  std::string name;
  std::unique_ptr<optim::Optimizer> (*make)(optim::Parameters);
};

inline const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"SGD",
       [](optim::Parameters p) -> std::unique_ptr<optim::Optimizer> {
         return std::make_unique<optim::SGD>(p);
       }},
      {"SGD nesterov",
       [](optim::Parameters p) -> std::unique_ptr<optim::Optimizer> {
         return std::make_unique<optim::SGD>(
             p, optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true});
       }},
      {"Adam",
       [](optim::Parameters p) -> std::unique_ptr<optim::Optimizer> {
         return std::make_unique<optim::Adam>(p, optim::AdamOptions{.lr = 0.1, .weight_decay = 0.1});
       }},
      {"AdamW amsgrad",
       [](optim::Parameters p) -> std::unique_ptr<optim::Optimizer> {
         return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 0.1, .amsgrad = true});
       }},
      {"RMSprop",
       [](optim::Parameters p) -> std::unique_ptr<optim::Optimizer> {
         return std::make_unique<optim::RMSprop>(p, optim::RMSpropOptions{.momentum = 0.5, .centered = true});
       }},
      {"Adagrad",
       [](optim::Parameters p) -> std::unique_ptr<optim::Optimizer> {
         return std::make_unique<optim::Adagrad>(
             p, optim::AdagradOptions{.lr_decay = 0.1, .initial_accumulator_value = 0.1});
       }},
      {"Adadelta",
       [](optim::Parameters p) -> std::unique_ptr<optim::Optimizer> {
         return std::make_unique<optim::Adadelta>(p);
       }},
  };
  return all;
}

/// Takes `steps` steps with gradients drawn from `seed`.
inline void train(optim::Optimizer& optimizer, std::vector<Tensor>& parameters, std::uint64_t seed = 7,
                  int steps = 3) {
  Rng rng(seed);
  for (int k = 0; k < steps; ++k) {
    for (Tensor& p : parameters) p.set_grad(randn(p.shape(), rng, p.dtype()));
    optimizer.step();
  }
}

inline NamedTensors copied(const NamedTensors& tensors) {
  NamedTensors out;
  for (const auto& [name, t] : tensors) out.emplace_back(name, t.clone());
  return out;
}

inline void check_equal(const NamedTensors& a, const NamedTensors& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].first == b[i].first);
    CHECK(a[i].second.to_vector() == b[i].second.to_vector());
  }
}

}  // namespace test
