/// Arguments of optimisers and clipping: tensors, named or not.
#pragma once

#include <algorithm>
#include <concepts>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <rill/core/io/safetensors.h>

#pragma GCC visibility push(default)

namespace rill::optim {

/// A tensor with a name, such as nn::Parameter.
template <class P>
concept NamedTensor = std::derived_from<P, Tensor> && requires(const P& p) {
  { p.name } -> std::convertible_to<std::string>;
};

/// A view of the leaf to be updated, such as nn::ParameterView.
template <class V>
concept LeafView = std::derived_from<V, Tensor> && requires(const V& v) {
  { v.leaf } -> std::convertible_to<Tensor>;
};

/// A parameter in a braced list: a tensor, or the leaf of a view of one.
struct ListedParameter {
  ListedParameter(const Tensor& t) : tensor(t) {}  ///< a leaf
  template <LeafView V>
  ListedParameter(const V& view) : tensor(view.leaf), of_view(true) {}  ///< the leaf of a view

  Tensor tensor;         ///< the leaf
  bool of_view = false;  ///< listed once, however many of its views are
};

/// A list of parameters: `module.parameters()`, `module.named_parameters()` (their leaves, each once, under
/// its first name), named tensors or `{w, b}`. Unnamed parameters are named by their position among all
/// parameters of the optimiser: "0", "1", …
class Parameters {
 public:
  // --- conversions from the lists above
  Parameters(NamedTensors named) : list_(std::move(named)) {}
  /// Without names.
  Parameters(const std::vector<Tensor>& tensors) {
    for (const Tensor& t : tensors) list_.emplace_back(std::string(), t);
  }
  /// With their names.
  template <NamedTensor P>
  Parameters(const std::vector<P>& parameters) {
    for (const P& p : parameters) list_.emplace_back(p.name, p);
  }
  /// The leaves of the views.
  template <LeafView V>
  Parameters(const std::vector<std::pair<std::string, V>>& views) {
    for (const auto& [name, view] : views) add_once(name, view.leaf);
  }
  /// Without names; of views, the leaves.
  Parameters(std::initializer_list<ListedParameter> parameters) {
    for (const ListedParameter& p : parameters) {
      if (p.of_view) {
        add_once(std::string(), p.tensor);
      } else {
        list_.emplace_back(std::string(), p.tensor);
      }
    }
  }

  // --- pairs of a name, possibly empty, and a tensor
  auto begin() const noexcept { return list_.begin(); }
  auto end() const noexcept { return list_.end(); }

 private:
  void add_once(const std::string& name, const Tensor& leaf) {
    const auto same = [&](const auto& known) { return known.second.ref() == leaf.ref(); };
    if (std::none_of(list_.begin(), list_.end(), same)) list_.emplace_back(name, leaf);
  }

  NamedTensors list_;
};

}  // namespace rill::optim

#pragma GCC visibility pop
