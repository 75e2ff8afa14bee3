#include <rill/nn/layers/layer_norm.h>

#include <algorithm>

namespace rill::nn {

LayerNorm::LayerNorm(LayerNormOptions options, Rng&) : options_(options) {
  const Shape& shape = options.normalized_shape;
  check(!shape.empty() && std::all_of(shape.begin(), shape.end(), [](std::int64_t n) { return n >= 1; }),
        "LayerNorm: normalized_shape {} needs one or more sizes of at least 1", shape);
  check(options.eps > 0, "LayerNorm: eps {} must be positive", options.eps);
  if (!options.elementwise_affine) return;
  weight_ = ones(shape).set_requires_grad();
  if (options.bias) bias_ = zeros(shape).set_requires_grad();
}

Tensor LayerNorm::operator()(const Tensor& x) const {
  detail::check_not_moved_from("layer_norm", weight_.defined() || !options_.elementwise_affine);
  return layer_norm(x, options_.normalized_shape, weight_, bias_, options_.eps);
}

void LayerNorm::members(Members& m) { m("weight", weight_)("bias", bias_); }

}  // namespace rill::nn
