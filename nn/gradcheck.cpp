#include <rill/nn/gradcheck.h>

#include <algorithm>
#include <string>

namespace rill::nn {
namespace {

/// Finds the handles that a module holds of its leaves; tied ones share a leaf.
class Handles final : public Members {
 public:
  explicit Handles(Module& module) { module.members(*this); }

  std::vector<std::pair<Tensor*, std::size_t>> found;  // with the index of the leaf in parameters()
  std::vector<Tensor> leaves;

 protected:
  void on_parameter(const std::string&, Tensor& leaf, const View*) override {
    const auto same = std::find_if(leaves.begin(), leaves.end(),
                                   [&](const Tensor& known) { return known.ref() == leaf.ref(); });
    const auto index = static_cast<std::size_t>(same - leaves.begin());
    if (same == leaves.end()) leaves.push_back(leaf);
    for (const auto& [handle, known] : found) {
      if (handle == &leaf) return;  // several parameters in one leaf
    }
    found.emplace_back(&leaf, index);
  }
};

}  // namespace

Substitution::Substitution(Module& module, std::span<const Tensor> values) {
  const Handles handles(module);
  check(values.size() == handles.leaves.size(), "Substitution: {} tensors for a module with {} parameters",
        values.size(), handles.leaves.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    check(values[i].shape() == handles.leaves[i].shape(), "Substitution: tensor {} is {}, the module's {}", i,
          values[i].shape(), handles.leaves[i].shape());
  }
  for (const auto& [handle, index] : handles.found)
    originals_.emplace_back(handle, std::exchange(*handle, values[index]));
}

Substitution::~Substitution() {
  for (auto& [handle, original] : originals_) *handle = original;
}

GradcheckReport gradcheck(Module& module, const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options) {
  const std::vector<Parameter> parameters = module.parameters();
  std::vector<Tensor> all(parameters.begin(), parameters.end());
  const auto count = static_cast<std::ptrdiff_t>(all.size());
  all.insert(all.end(), inputs.begin(), inputs.end());
  return rill::gradcheck(
      [&](const std::vector<Tensor>& given) {
        const Substitution substitution(module, std::span(given).first(static_cast<std::size_t>(count)));
        return f({given.begin() + count, given.end()});
      },
      all, options);
}

}  // namespace rill::nn
