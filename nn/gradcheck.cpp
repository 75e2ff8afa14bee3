#include <rill/nn/gradcheck.h>

#include <algorithm>
#include <string>

namespace rill::nn {
namespace {

/// Finds the handles that a module holds of its arrays; tied ones share an array.
class Handles final : public Members {
 public:
  explicit Handles(const Module& module) { module.members(*this); }

  std::vector<std::pair<Tensor*, std::size_t>> found;  // with the place of the array in parameters()
  std::vector<Tensor> arrays;

 protected:
  void on_parameter(const std::string&, const Tensor& array, const View*) override {
    const auto same =
        std::find_if(arrays.begin(), arrays.end(), [&](const Tensor& a) { return a.ref() == array.ref(); });
    const auto place = static_cast<std::size_t>(same - arrays.begin());
    if (same == arrays.end()) arrays.push_back(array);
    for (const auto& [handle, known] : found) {
      if (handle == &array) return;  // several parameters in one array
    }
    found.emplace_back(const_cast<Tensor*>(&array), place);
  }
};

}  // namespace

Substitution::Substitution(const Module& module, std::span<const Tensor> values) {
  const Handles handles(module);
  check(values.size() == handles.arrays.size(),
        "Substitution: {} tensors for a module with {} arrays of parameters", values.size(),
        handles.arrays.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    check(values[i].shape() == handles.arrays[i].shape(), "Substitution: tensor {} is {}, the module's {}", i,
          values[i].shape(), handles.arrays[i].shape());
  }
  for (const auto& [handle, place] : handles.found)
    originals_.emplace_back(handle, std::exchange(*handle, values[place]));
}

Substitution::~Substitution() {
  for (auto& [handle, original] : originals_) *handle = original;
}

GradcheckReport gradcheck(const Module& module, const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options) {
  std::vector<Tensor> all = module.parameters();
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
