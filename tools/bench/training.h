/// Timing a training step: forward, backward, Adam.
#pragma once

#include <cstdint>
#include <functional>

#include <bench/floor.h>
#include <bench/workloads.h>
#include <rill/core/tensor.h>
#include <rill/nn/module.h>

namespace bench {

/// What a training workload consists of.
struct Training {
  const rill::nn::Module& model;
  std::function<rill::Tensor()> loss;
  std::int64_t items;  ///< tokens or time steps that one step handles
  Work work;           ///< its least arithmetic, but for the parameters
};

/// Steps a model until the options' time is over; emits medians of the step and its parts, and the floor.
void measure_training(const Training& training, const Options& options, const Emit& emit);

}  // namespace bench
