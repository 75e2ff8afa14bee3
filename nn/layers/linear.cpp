#include <rill/nn/layers/linear.h>

#include <cmath>

#include <rill/nn/init.h>

namespace rill::nn {

Linear::Linear(LinearOptions options, Rng& rng) : options_(options) {
  check(options.in_features >= 1 && options.out_features >= 1,
        "Linear: in_features {} and out_features {} must be at least 1", options.in_features,
        options.out_features);
  const double bound = 1 / std::sqrt(static_cast<double>(options.in_features));
  leaf_ = init::uniform_(empty({options.in_features, options.out_features}), -bound, bound, rng)
              .set_requires_grad();
  if (options.bias)
    bias_ = init::uniform_(empty({options.out_features}), -bound, bound, rng).set_requires_grad();
}

ParameterView Linear::weight() const {
  const Tensor leaf = stored_weight().array;
  return {tied_ ? leaf : leaf.t(), leaf};
}

StoredWeight Linear::stored_weight() const {
  detail::check_not_moved_from("linear", leaf_.defined());
  return {leaf_, tied_};
}

Tensor Linear::operator()(const Tensor& x) const { return linear(x, stored_weight(), bias_); }

void Linear::tie_weight(const ParameterView& weight) {
  check(weight.shape() == Shape{options_.out_features, options_.in_features},
        "tie_weight: the weight is {}, the layer's [{}, {}]", weight.shape(), options_.out_features,
        options_.in_features);
  check(weight.leaf.is_leaf(), "tie_weight: the weight was computed by '{}'; share a parameter",
        weight.leaf.op_name());
  leaf_ = weight.leaf;
  tied_ = weight.ref() == weight.leaf.ref();
}

void Linear::members(Members& m) {
  if (tied_) {
    m("weight", leaf_);
  } else {
    m("weight", leaf_, [](const Tensor& leaf) { return leaf.t(); });
  }
  m("bias", bias_);
}

}  // namespace rill::nn
