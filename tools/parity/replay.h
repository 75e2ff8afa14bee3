/// Replaying one case: its tensors as inputs and parameters, its op run, its gradients taken.
#pragma once

#include <string>
#include <string_view>

#include <parity/call.h>
#include <parity/compare.h>
#include <parity/reference_set.h>
#include <rill/nn/module.h>

namespace rill::parity {

/// A case, with its tensors in the floating dtype that it is replayed in.
class Replay {
 public:
  Replay(const ReferenceSet& set, const Case& c, DType dtype) : set_(set), case_(c), dtype_(dtype) {}

  const Case& given() const noexcept { return case_; }
  DType dtype() const noexcept { return dtype_; }
  /// A stored tensor; floating ones converted.
  Tensor stored(std::string_view role, std::string_view name) const;

  /// The case's args and its inputs, those with a gradient as leaves that want it.
  Call& call();
  /// Converts a module to the dtype and gives it the case's parameters, stored or by formula.
  void load(nn::Module& module);
  /// The parameters of the module loaded last.
  const nn::NamedParameters& parameters() const noexcept { return parameters_; }

  /// Runs the gradients back from the outputs, and collects outputs and gradients.
  Results finish(const NamedTensors& outputs);

 private:
  NamedTensors formula_parameters(const nn::Module& module);
  Tensor gradient_of(const std::string& name) const;

  const ReferenceSet& set_;
  const Case& case_;
  DType dtype_;
  Call call_;
  bool called_ = false;
  std::map<std::string, Tensor, std::less<>> inputs_;
  nn::NamedParameters parameters_;
};

/// The gradient of a leaf; zeros where it has none.
Tensor gradient_or_zeros(const nn::ParameterView& leaf);

/// Runs a case. Throws Unsupported for what rill does not offer and Error for what went wrong.
Results replay(const ReferenceSet& set, const Case& c, DType dtype);

// The kinds of case.
Results replay_op(Replay& r);
Results replay_module(Replay& r);
Results replay_optimiser(Replay& r);
Results replay_utility(Replay& r);
Results replay_schedule(Replay& r);
Results replay_training(Replay& r);

}  // namespace rill::parity
