/// Parameters that are views of a stored array. Internal to modules.
#pragma once

#include <rill/core/autograd.h>
#include <rill/nn/layers/linear.h>

namespace rill::nn::detail {

/// view(array) as a parameter of its own: a part of the leaf, or a recorded view where the array was computed
/// (Substitution).
template <class View>
Tensor part_of(const Tensor& array, View&& view) {
  if (!array.is_leaf() || !array.is_contiguous()) return view(array);
  const NoGrad no_grad;
  return array.part(view(array));
}

/// The array [in, out] that a layer stores its weight in.
inline Tensor stored_weight(const Linear& layer) {
  const Tensor weight = layer.weight();
  const Tensor base = weight.base();
  return base.ref() == weight.ref() ? weight.t() : base;
}

}  // namespace rill::nn::detail
