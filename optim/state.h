/// How optimisers and schedules take back what they saved. Internal to optim.
#pragma once

#include <string>
#include <vector>

#include <rill/core/io/safetensors.h>

namespace rill::optim::detail {

/// The tensors of `given` in the order of `wanted`. Throws "op: …" listing every name that is missing or
/// unexpected and every tensor whose shape or dtype is another.
std::vector<Tensor> match_state(const std::string& op, const NamedTensors& wanted, const NamedTensors& given);

}  // namespace rill::optim::detail
