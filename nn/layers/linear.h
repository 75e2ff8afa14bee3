/// The affine layer y = x Wᵀ + b.
#pragma once

#include <cstdint>

#include <rill/core/ops/stored_weight.h>
#include <rill/nn/module.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// Options of Linear, with PyTorch's names.
struct LinearOptions {
  std::int64_t in_features = 0;   ///< I
  std::int64_t out_features = 0;  ///< O
  bool bias = true;               ///< with biases
};

/// y = x Wᵀ + b: x [.., in] → [.., out]. Parameters `weight` [out, in] and `bias` [out], uniform in ±1/√in.
/// The weight is stored as [in, out], the layout in which the product is fastest.
class Linear final : public Module {
 public:
  /// Throws unless both sizes are at least 1.
  Linear(LinearOptions options, Rng& rng);

  /// Throws "linear: …" if the last size of x is not in_features.
  Tensor operator()(const Tensor& x) const;

  /// The weight [out, in].
  ParameterView weight() const;
  /// The bias [out]; undefined if there is none.
  const Tensor& bias() const noexcept { return bias_; }
  /// Ties the weight to `weight` [out, in]: a leaf, such as an embedding's weight, or another layer's
  /// weight().
  void tie_weight(const ParameterView& weight);
  /// The leaf that stores the weight, for ops that use it directly.
  StoredWeight stored_weight() const;

  const LinearOptions& options() const noexcept { return options_; }  ///< options
  void members(Members& m) override;

 private:
  LinearOptions options_;
  Tensor leaf_;  // [in, out], or a shared weight [out, in]
  Tensor bias_;
  bool tied_ = false;  // the leaf is [out, in]
};

}  // namespace rill::nn

#pragma GCC visibility pop
