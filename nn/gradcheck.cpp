#include <rill/nn/gradcheck.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

#include <rill/core/format.h>
#include <rill/nn/walk.h>

namespace rill::nn {
namespace {

/// Throws unless a backward pass from the results reaches all parameters and otherwise only `inputs`.
void check_leaves(const char* op, const Module& module, std::span<const Tensor> results,
                  const std::vector<Tensor>& inputs) {
  const std::vector<Parameter> parameters = module.parameters();
  std::set<const TensorImpl*> known, reached;
  for (const Tensor& p : parameters) known.insert(p.ref().get());
  for (const Tensor& x : inputs) known.insert(x.ref().get());
  std::vector<std::string> faults;
  const bool recorded =
      std::any_of(results.begin(), results.end(), [](const Tensor& y) { return y.requires_grad(); });
  if (!recorded) faults.push_back("the result has no gradient: nothing that it was computed from wants one");
  for (const auto& [leaf, reader] : reached_leaves(results)) {
    reached.insert(leaf.ref().get());
    if (known.contains(leaf.ref().get())) continue;
    faults.push_back(fmt::format(
        "a leaf {} {} that '{}' reads wants a gradient but is no parameter; list it in members or detach it",
        name(leaf.dtype()), leaf.shape(), reader));
  }
  for (const Parameter& p : parameters) {
    if (!p.requires_grad()) {
      faults.push_back(fmt::format("'{}' wants no gradient; call set_requires_grad()", p.name));
    } else if (recorded && !reached.contains(p.ref().get())) {
      faults.push_back(fmt::format("'{}' gets no gradient: the result does not depend on it", p.name));
    }
  }
  check(faults.empty(), "{}: {}", op, fmt::join(faults, "; "));
}

/// The index within a view of element `at` of its leaf, in row-major order of the leaf; nullopt if the view
/// does not contain it.
std::optional<Dims> index_in(const ParameterView& view, std::int64_t at) {
  at -= view.impl().offset - view.leaf.impl().offset;
  std::vector<int> by_stride;
  for (int d = 0; d < view.dim(); ++d) {
    if (view.size(d) > 1) by_stride.push_back(d);
  }
  std::sort(by_stride.begin(), by_stride.end(),
            [&](int a, int b) { return view.stride(a) > view.stride(b); });
  Dims index = Dims::filled(view.dim(), 0);
  for (const int d : by_stride) {
    index[d] = at / view.stride(d);
    at %= view.stride(d);
    if (index[d] < 0 || index[d] >= view.size(d)) return std::nullopt;
  }
  return at == 0 ? std::optional(index) : std::nullopt;
}

/// The name of a leaf's element, by the parameter that contains it: "a.weight [0, 2]".
std::string element_name(const Parameter& leaf, const Dims& index) {
  std::int64_t at = 0;
  for (int d = 0; d < leaf.dim(); ++d) at += index[d] * leaf.stride(d);
  for (const auto& [name, view] : leaf.views) {
    if (const auto found = index_in(view, at)) return fmt::format("{} {}", name, *found);
  }
  return fmt::format("{} {}", leaf.name, index);
}

}  // namespace

Substitution::Substitution(Module& module, std::span<const Tensor> values) {
  const NoGrad no_grad;
  const detail::Walk walk(module);
  const std::vector<Tensor> leaves = walk.arrays(false);
  check(values.size() == leaves.size(), "Substitution: {} tensors for a module with {} parameters",
        values.size(), leaves.size());
  std::map<const TensorImpl*, const Tensor*> value_of;
  for (std::size_t i = 0; i < values.size(); ++i) {
    check(values[i].shape() == leaves[i].shape(), "Substitution: tensor {} is {}, the module's {}", i,
          values[i].shape(), leaves[i].shape());
    value_of[leaves[i].ref().get()] = &values[i];
  }
  std::set<const Tensor*> done;  // a leaf is listed once per parameter that it stores
  for (const detail::Entry& e : walk.entries) {
    if (!e.trained || !done.insert(e.handle).second) continue;
    originals_.emplace_back(e.handle, std::exchange(*e.handle, *value_of[e.leaf.ref().get()]));
  }
}

Substitution::~Substitution() {
  for (auto& [handle, original] : originals_) *handle = original;
}

void check_members(const Module& module, const Tensor& loss, const std::vector<Tensor>& inputs) {
  check_leaves("check_members", module, std::span(&loss, 1), inputs);
}

GradcheckReport gradcheck(Module& module, const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options) {
  std::vector<Tensor> leaves;
  for (const Tensor& x : inputs) {
    const bool wanted = x.defined() && x.requires_grad();
    leaves.push_back(wanted ? x.detach().clone().set_requires_grad() : x);
  }
  check_leaves("gradcheck", module, f(leaves), leaves);

  const std::vector<Parameter> parameters = module.parameters();
  std::vector<Tensor> all(parameters.begin(), parameters.end());
  all.insert(all.end(), leaves.begin(), leaves.end());
  GradcheckOptions named = options;
  named.names.clear();
  for (const Parameter& p : parameters) named.names.push_back(p.name);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    named.names.push_back(i < options.names.size() ? options.names[i] : fmt::format("input {}", i));
  }
  named.element_name = [&](std::size_t input, const Dims& index) {
    return input < parameters.size() ? element_name(parameters[input], index)
                                     : fmt::format("{} {}", named.names[input], index);
  };
  return rill::gradcheck(
      [&](const std::vector<Tensor>& given) {
        const Substitution substitution(module, std::span(given).first(parameters.size()));
        return f({given.begin() + static_cast<std::ptrdiff_t>(parameters.size()), given.end()});
      },
      all, named);
}

}  // namespace rill::nn
