/// Random zeroing of activations while training.
#pragma once

#include <rill/nn/module.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// Options of Dropout, with PyTorch's names.
struct DropoutOptions {
  double p = 0.5;  ///< probability of an element to become 0
};

/// In training mode, each element of the result is 0 with probability p, else x / (1 - p). In evaluation
/// mode, or with p = 0, returns x itself.
///
/// Element i of call n depends on (seed, stream, n, i) alone, regardless of threads; seed and stream are
/// drawn from the constructor's Rng. They and the number of calls are part of the resume state
/// (Module::counters), so that a resumed run is exactly reproducible. Thread safety: concurrent calls of one
/// module get distinct call numbers, in an order that varies between runs; give each thread a clone for
/// reproducible masks.
class Dropout final : public Module {
 public:
  /// Throws unless 0 <= p <= 1.
  Dropout(DropoutOptions options, Rng& rng);

  /// x [..] → the same shape.
  Tensor operator()(const Tensor& x) const;

  const DropoutOptions& options() const noexcept { return options_; }  ///< options
  void members(Members& m) override;

 private:
  DropoutOptions options_;
  mutable DropoutKey key_;  // the key of the next call
};

}  // namespace rill::nn

#pragma GCC visibility pop
