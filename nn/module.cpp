#include <rill/nn/module.h>

#include <map>
#include <utility>

#include <fmt/format.h>

#include <rill/nn/walk.h>

namespace rill::nn {

using detail::Entry;
using detail::Walk;

// --- members

std::string Members::full_name(std::string_view name) const { return prefix_ + std::string(name); }

Members& Members::operator()(std::string_view name, Tensor& parameter) {
  if (parameter.defined()) on_parameter(full_name(name), parameter, nullptr);
  return *this;
}

Members& Members::operator()(std::string_view name, Tensor& leaf, View view) {
  if (leaf.defined()) on_parameter(full_name(name), leaf, &view);
  return *this;
}

Members& Members::operator()(std::string_view name, Module& child) {
  on_module(full_name(name), child);
  const std::size_t length = prefix_.size();
  if (!name.empty()) prefix_.append(name).append(".");
  child.members(*this);
  prefix_.resize(length);
  return *this;
}

Members& Members::buffer(std::string_view name, Tensor& buffer) {
  if (buffer.defined()) on_buffer(full_name(name), buffer);
  return *this;
}

Members& Members::counter(std::string_view name, std::uint64_t& counter) {
  on_counter(full_name(name), {.get = [&counter] { return counter; },
                               .set = [&counter](std::uint64_t value) { counter = value; }});
  return *this;
}

Members& Members::rng(std::string_view name, Rng& rng) {
  using Field = std::pair<const char*, std::uint64_t RngState::*>;
  for (const auto& [field, member] : {Field{".seed", &RngState::seed}, Field{".stream", &RngState::stream},
                                      Field{".counter", &RngState::counter}}) {
    on_counter(full_name(name) + field, {.get = [&rng, member = member] { return rng.state().*member; },
                                         .set =
                                             [&rng, member = member](std::uint64_t value) {
                                               RngState state = rng.state();
                                               state.*member = value;
                                               rng.set_state(state);
                                             }});
  }
  return *this;
}

// --- parameters

namespace {

/// Maps a dense tensor of the leaf's shape to the part that corresponds to `view` of the leaf.
auto part_like(const Tensor& view, const Tensor& leaf) {
  return [shape = view.shape(), strides = view.strides(),
          offset = view.impl().offset - leaf.impl().offset](const Tensor& whole) {
    return rill::detail::make_view(whole.impl().storage, whole.dtype(), shape, strides,
                                   whole.impl().offset + offset);
  };
}

}  // namespace

Tensor ParameterView::grad() const {
  check(
      impl().storage == leaf.impl().storage,
      "grad: a parameter of shape {} was converted from {} to {} since it was taken; take it from the module "
      "again",
      shape(), name(dtype()), name(leaf.dtype()));
  const Tensor whole = leaf.grad();
  return whole.defined() ? part_like(*this, leaf)(whole) : Tensor();
}

void ParameterView::register_hook(std::function<Tensor(const Tensor&)> hook) const {
  if (ref() == leaf.ref()) return leaf.register_hook(std::move(hook));
  leaf.register_hook([part = part_like(*this, leaf), hook = std::move(hook)](const Tensor& whole) {
    const Tensor gradient = part(whole), replaced = hook(gradient);
    if (!replaced.defined()) return Tensor();
    check(replaced.shape() == gradient.shape(), "hook: the gradient is {}, its replacement {}",
          gradient.shape(), replaced.shape());
    Tensor changed = whole.clone();
    part(changed).copy_(replaced);
    return changed;
  });
}

ParameterView& ParameterView::set_requires_grad(bool wanted) {
  leaf.set_requires_grad(wanted);
  return *this;
}

std::vector<Parameter> Module::parameters() const {
  const Walk walk(*this);
  std::vector<Parameter> all;
  std::map<const TensorImpl*, std::size_t> place;
  for (std::size_t i = 0; i < walk.entries.size(); ++i) {
    const Entry& e = walk.entries[i];
    if (!e.trained) continue;
    const auto [at, is_new] = place.try_emplace(e.leaf.ref().get(), all.size());
    if (is_new) all.push_back({e.leaf, e.name, {}});
    if (walk.first_of(i) == i) all[at->second].views.emplace_back(e.name, ParameterView(e.view, e.leaf));
  }
  return all;
}

NamedParameters Module::named_parameters() const {
  NamedParameters all;
  for (const Entry& e : Walk(*this).entries) {
    if (e.trained) all.emplace_back(e.name, ParameterView(e.view, e.leaf));
  }
  return all;
}

ParameterView Module::parameter(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& [known, view] : named_parameters()) {
    if (known == name) return view;
    names.push_back(known);
  }
  fail("parameter: there is no '{}'; the module has {}", name,
       names.empty() ? "none" : detail::quoted(names));
}

NamedTensors Module::named_grads() const {
  const NoGrad no_grad;
  NamedTensors all;
  for (const auto& [name, view] : named_parameters()) all.emplace_back(name, view.grad());
  return all;
}

std::int64_t Module::num_parameters() const {
  const NoGrad no_grad;
  std::int64_t count = 0;
  for (const Tensor& leaf : Walk(*this).arrays(false)) count += leaf.numel();
  return count;
}

void Module::zero_grad() {
  const NoGrad no_grad;
  for (Tensor& leaf : Walk(*this).arrays(false)) leaf.zero_grad();
}

void Module::set_requires_grad(bool wanted) {
  const NoGrad no_grad;
  for (Tensor& leaf : Walk(*this).arrays(false)) leaf.set_requires_grad(wanted);
}

void Module::to(DType dtype) {
  check(is_floating(dtype), "to: a module's parameters are float32 or float64, not {}", name(dtype));
  const NoGrad no_grad;
  for (const Tensor& array : Walk(*this).arrays(true)) {
    if (is_floating(array.dtype())) detail::convert(array, dtype);
  }
}

void Module::train(bool on) {
  const NoGrad no_grad;
  for (Module* module : Walk(*this).modules) module->training_ = on;
}

std::string Module::to_string() const {
  const NoGrad no_grad;
  std::string text;
  for (const auto& [name, tensor] : named_parameters()) {
    text += fmt::format("{}: {} {}\n", name, rill::name(tensor.dtype()), tensor.shape());
  }
  return text + fmt::format("{} parameters\n", num_parameters());
}

}  // namespace rill::nn
