/// The whole state of a training run between two batches, as one file.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include <rill/core/io/safetensors.h>
#include <rill/nn/module.h>
#include <rill/optim/optim.h>

namespace translator {

/// Writes parameters, the state of optimiser and schedule, the random streams' counters, and `progress`.
void save_checkpoint(const std::filesystem::path& file, const rill::nn::Module& network,
                     const rill::optim::Optimizer& optimizer, const rill::optim::ReduceLROnPlateau& schedule,
                     const nlohmann::json& progress);

/// A checkpoint that was read.
struct Checkpoint {
  std::string name;  ///< of the file, for messages
  rill::SafetensorsFile state;
  nlohmann::json progress;
};

/// Throws rill::Error naming the file when it is missing, damaged or no checkpoint.
Checkpoint read_checkpoint(const std::filesystem::path& file);

/// Puts a checkpoint's state in place. Throws rill::Error naming the file when something does not fit.
void restore(const Checkpoint& checkpoint, rill::nn::Module& network, rill::optim::Optimizer& optimizer,
             rill::optim::ReduceLROnPlateau& schedule);

}  // namespace translator
