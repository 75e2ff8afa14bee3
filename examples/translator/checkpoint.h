/// The whole state of a training run between two batches, as one file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include <rill/nn/module.h>
#include <rill/optim/optim.h>

namespace translator {

/// Writes parameters, the state of optimiser and schedule, the random streams' counters, and `progress`.
void save_checkpoint(const std::filesystem::path& file, const rill::nn::Module& network,
                     const rill::optim::Optimizer& optimizer, const rill::optim::ReduceLROnPlateau& schedule,
                     const nlohmann::json& progress);

/// Takes all that back; returns `progress`. Throws rill::Error naming the file when something does not fit.
nlohmann::json load_checkpoint(const std::filesystem::path& file, rill::nn::Module& network,
                               rill::optim::Optimizer& optimizer, rill::optim::ReduceLROnPlateau& schedule);

}  // namespace translator
