/// What optimisers and clipping are given: tensors, with names or without.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <rill/core/io/safetensors.h>

#pragma GCC visibility push(default)

namespace rill::optim {

/// A list of parameters: `module.named_parameters()`, `module.parameters()` or `{w, b}`. One without a name
/// goes by its position among all parameters of the optimiser: "0", "1", …
class Parameters {
 public:
  Parameters(NamedTensors named) : list_(std::move(named)) {}
  Parameters(const std::vector<Tensor>& tensors) {
    for (const Tensor& t : tensors) list_.emplace_back(std::string(), t);
  }
  Parameters(std::initializer_list<Tensor> tensors) : Parameters(std::vector<Tensor>(tensors)) {}

  auto begin() const noexcept { return list_.begin(); }
  auto end() const noexcept { return list_.end(); }

 private:
  NamedTensors list_;
};

}  // namespace rill::optim

#pragma GCC visibility pop
