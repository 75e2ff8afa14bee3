/// Random zeroing of activations while training.
#pragma once

#include <rill/nn/module.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// Options of Dropout, with PyTorch's names.
struct DropoutOptions {
  double p = 0.5;  ///< probability of an element to become 0
};

/// While training: each element of x is 0 with probability p, else x / (1 - p). In eval(), or with p = 0: x
/// itself.
///
/// Element i of call n depends on (seed, stream, n, i) alone, whatever the threads; seed and stream are split
/// from the constructor's Rng. They and the count of calls belong to the resume state (Module::counters), so
/// that a resumed run repeats exactly. Threads: calls of one module on several threads at once take a number
/// each, in an order that differs from run to run; a clone for each thread repeats exactly.
class Dropout final : public Module {
 public:
  /// Throws unless 0 <= p <= 1.
  Dropout(DropoutOptions options, Rng& rng);

  /// x [..] → the same shape.
  Tensor operator()(const Tensor& x) const;

  const DropoutOptions& options() const noexcept { return options_; }  ///< as given
  void members(Members& m) override;

 private:
  DropoutOptions options_;
  mutable DropoutKey key_;  // the key of the next call
};

}  // namespace rill::nn

#pragma GCC visibility pop
