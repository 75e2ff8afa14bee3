/// Timing a training step: forward, backward, Adam.
#pragma once

#include <cstdint>
#include <functional>

#include <bench/floor.h>
#include <bench/workloads.h>
#include <rill/core/tensor.h>
#include <rill/nn/module.h>

namespace bench {

/// A model and its loss on fixed data.
struct TrainingWorkload {
  const rill::nn::Module& model;
  std::function<rill::Tensor()> loss;
  std::int64_t items;  ///< tokens or time steps per training step
  Work work;           ///< its minimal arithmetic, `parameters` left 0
};

/// Runs training steps for the options' time; emits medians of the step and its phases, and the floor.
void measure_training(const TrainingWorkload& training, const WorkloadOptions& options, const Emit& emit);

}  // namespace bench
