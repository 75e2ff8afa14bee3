#include <rill/nn/walk.h>

namespace rill::nn::detail {

bool same_elements(const Tensor& a, const Tensor& b) {
  return a.impl().storage == b.impl().storage && a.impl().offset == b.impl().offset &&
         a.shape() == b.shape() && a.strides() == b.strides();
}

std::size_t Walk::first_of(std::size_t i) const {
  std::size_t first = 0;
  while (!same_elements(entries[first].view, entries[i].view)) ++first;
  return first;
}

std::vector<Tensor> Walk::arrays(bool with_buffers) const {
  std::vector<Tensor> all;
  std::set<const TensorImpl*> seen;
  for (const Entry& e : entries) {
    if ((e.trained || with_buffers) && seen.insert(e.leaf.ref().get()).second) all.push_back(e.leaf);
  }
  return all;
}

void Walk::on_parameter(const std::string& name, Tensor& leaf, const View* view) {
  check_new(name);
  entries.push_back({name, &leaf, leaf, view ? (*view)(leaf) : leaf, true});
  check(entries.back().view.impl().storage == leaf.impl().storage,
        "members: the view of '{}' is a copy; a parameter's view must share the leaf's data", name);
  check(entries.back().view.numel() <= leaf.numel(),
        "members: the view of '{}' has {} elements and its leaf {}; a view must not repeat elements", name,
        entries.back().view.numel(), leaf.numel());
}

void Walk::on_buffer(const std::string& name, Tensor& buffer) {
  check_new(name);
  entries.push_back({name, &buffer, buffer, buffer, false});
}

void Walk::on_counter(const std::string& name, Counter counter) {
  check_new(name);
  counters.emplace_back(name, std::move(counter));
}

void Walk::check_new(const std::string& name) {
  check(names_.insert(name).second, "members: duplicate name '{}'; rename one member", name);
}

void convert(const Tensor& array, DType dtype) {
  if (array.dtype() == dtype) return;
  const NoGrad no_grad;
  const Tensor converted = array.detach().to(dtype);
  const TensorImpl& from = converted.impl();
  TensorImpl& impl = array.impl();
  impl.dtype = dtype;
  impl.storage = from.storage;
  impl.offset = from.offset;
  impl.strides = from.strides;
  impl.contiguous = from.contiguous;
  impl.grad = nullptr;
}

std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

}  // namespace rill::nn::detail
