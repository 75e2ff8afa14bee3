/// Layer normalisation.
#pragma once

#include <rill/nn/module.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// Options of LayerNorm, with PyTorch's names.
struct LayerNormOptions {
  Shape normalized_shape = {};     ///< sizes of the last dimensions of x, which are normalised together
  double eps = 1e-5;               ///< added to the variance
  bool elementwise_affine = true;  ///< with weight and bias
  bool bias = true;                ///< only with elementwise_affine
};

/// (x - mean) / √(var + eps) · weight + bias over the last dimensions, biased variance (Ba, Kiros and Hinton
/// 2016): x [.., normalized_shape] → the same. Parameters `weight` (ones) and `bias` (zeros)
/// [normalized_shape].
class LayerNorm final : public Module {
 public:
  /// Throws for an empty normalized_shape, a size below 1 or an eps that is not positive. The Rng is not
  /// used.
  LayerNorm(LayerNormOptions options, Rng& rng);

  /// x [.., normalized_shape] → the same shape.
  Tensor operator()(const Tensor& x) const;

  const LayerNormOptions& options() const noexcept { return options_; }  ///< options
  void members(Members& m) override;

 private:
  LayerNormOptions options_;
  Tensor weight_;
  Tensor bias_;
};

}  // namespace rill::nn

#pragma GCC visibility pop
