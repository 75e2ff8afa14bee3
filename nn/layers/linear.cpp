#include <rill/nn/layers/linear.h>

#include <cmath>

#include <rill/nn/init.h>

namespace rill::nn {
namespace {

Tensor transposed(const Tensor& array) { return array.t(); }

}  // namespace

Linear::Linear(LinearOptions options, Rng& rng) : options_(options) {
  check(options.in_features >= 1 && options.out_features >= 1,
        "Linear: in_features {} and out_features {} must be at least 1", options.in_features,
        options.out_features);
  const double bound = 1 / std::sqrt(static_cast<double>(options.in_features));
  array_ = init::uniform_(empty({options.in_features, options.out_features}), -bound, bound, rng)
               .set_requires_grad();
  if (options.bias)
    bias_ = init::uniform_(empty({options.out_features}), -bound, bound, rng).set_requires_grad();
}

Tensor Linear::weight() const {
  if (tied_) return array_;
  // Only in a Substitution is the array anything but a contiguous leaf.
  if (!array_.is_leaf() || !array_.is_contiguous()) return array_.t();
  const NoGrad no_grad;
  return array_.part(transposed(array_));
}

Tensor Linear::operator()(const Tensor& x) const { return linear(x, weight(), bias_); }

void Linear::tie_weight(const Tensor& weight) {
  check(weight.shape() == Shape{options_.out_features, options_.in_features},
        "tie_weight: the weight is {}, the layer's [{}, {}]", weight.shape(), options_.out_features,
        options_.in_features);
  check(weight.is_leaf(), "tie_weight: the weight was computed by '{}'; share a parameter", weight.op_name());
  array_ = weight;
  tied_ = true;
}

void Linear::members(Members& m) const {
  if (tied_) {
    m("weight", array_);
  } else {
    m("weight", array_, transposed);
  }
  m("bias", bias_);
}

}  // namespace rill::nn
