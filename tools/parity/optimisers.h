/// Optimisers and schedules by the names and options of the reference sets, which are PyTorch's.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include <rill/optim/optimizer.h>

namespace rill::parity {

/// The optimiser `name` with the options of `args` (and, in `args.groups`, those of each group of parameters,
/// named by `params`). Throws Unsupported for an unknown name or option. Parameters that no group names are
/// left out.
std::unique_ptr<optim::Optimizer> make_optimiser(const std::string& name, const nlohmann::json& args,
                                                 const optim::Parameters& parameters);

/// A schedule that changes the rates of an optimiser: to be called once after each step (or epoch), with its
/// metric.
using Schedule = std::function<void(double metric)>;

/// The schedule `name` with the options of `args`. Throws Unsupported for an unknown name or option.
Schedule make_schedule(const std::string& name, const nlohmann::json& args, optim::Optimizer& optimiser);

/// The name and the options of `{"Name": {options}}`.
std::pair<std::string, nlohmann::json> named_options(const nlohmann::json& entry);

}  // namespace rill::parity
