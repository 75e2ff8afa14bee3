#include <rill/nn/module.h>

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

namespace rill::nn {
namespace {

/// A named tensor of a module: the leaf that stores it and the view of it that bears the name.
struct Entry {
  std::string name;
  Tensor leaf;
  Tensor view;
  bool trained;
};

bool same_elements(const Tensor& a, const Tensor& b) {
  return a.impl().storage == b.impl().storage && a.impl().offset == b.impl().offset &&
         a.shape() == b.shape() && a.strides() == b.strides();
}

/// Everything a module lists, in order. Views are recorded or not as the mode of the caller is.
class Walk final : public Members {
 public:
  /// `members` is not const, since walks that load or convert change what it lists. Those that only read come
  /// through here from a const module, too; this is the one place where its constness is cast away.
  explicit Walk(const Module& root) { (*this)("", const_cast<Module&>(root)); }

  std::vector<Entry> entries;
  std::vector<std::pair<std::string, Counter>> counters;
  std::vector<Module*> modules;

  /// The entry that entry i repeats under another name, or i itself.
  std::size_t first_of(std::size_t i) const {
    std::size_t first = 0;
    while (!same_elements(entries[first].view, entries[i].view)) ++first;
    return first;
  }

  /// Every leaf once, and every buffer if asked for.
  std::vector<Tensor> arrays(bool with_buffers) const {
    std::vector<Tensor> all;
    std::set<const TensorImpl*> seen;
    for (const Entry& e : entries) {
      if ((e.trained || with_buffers) && seen.insert(e.leaf.ref().get()).second) all.push_back(e.leaf);
    }
    return all;
  }

 protected:
  void on_parameter(const std::string& name, Tensor& leaf, const View* view) override {
    check_new(name);
    entries.push_back({name, leaf, view ? (*view)(leaf) : leaf, true});
    check(entries.back().view.impl().storage == leaf.impl().storage,
          "members: the view of '{}' is a copy; a parameter's view must share the leaf's data", name);
  }
  void on_buffer(const std::string& name, Tensor& buffer) override {
    check_new(name);
    entries.push_back({name, buffer, buffer, false});
  }
  void on_counter(const std::string& name, Counter counter) override {
    check_new(name);
    counters.emplace_back(name, std::move(counter));
  }
  void on_module(const std::string&, Module& module) override { modules.push_back(&module); }

 private:
  void check_new(const std::string& name) {
    check(names_.insert(name).second, "members: the name '{}' is given twice; rename one member", name);
  }
  std::set<std::string> names_;
};

/// Makes the tensor hold `dtype`, whoever shares its handle.
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

using State = std::map<std::string, Tensor>;

State by_name(const NamedTensors& state) {
  State found;
  for (const auto& [name, tensor] : state) {
    check(found.emplace(name, tensor).second, "load: the state has two tensors named '{}'", name);
  }
  return found;
}

/// Equal numbers; a NaN equals a NaN.
bool equal_values(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  return visit(a.dtype(), [&]<class T>(Type<T>) {
    const std::vector<T> x = a.to_vector<T>(), y = b.to_vector<T>();
    return std::equal(x.begin(), x.end(), y.begin(), [](T p, T q) { return p == q || (p != p && q != q); });
  });
}

/// The names that one tensor has, tied ones together, in order.
std::vector<std::vector<std::size_t>> tied_groups(const Walk& walk) {
  std::map<std::size_t, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < walk.entries.size(); ++i) groups[walk.first_of(i)].push_back(i);
  std::vector<std::vector<std::size_t>> list;
  for (auto& [first, group] : groups) list.push_back(std::move(group));
  return list;
}

/// What does not fit about a state, and what is to be copied where.
class LoadPlan {
 public:
  LoadPlan(const Walk& walk, const State& state) {
    for (const auto& group : tied_groups(walk)) add(walk, group, state);
    std::set<std::string> known;
    for (const Entry& e : walk.entries) known.insert(e.name);
    for (const auto& [name, tensor] : state) {
      if (!known.contains(name)) unexpected_.push_back(name);
    }
  }

  void throw_unless_fit(const std::string& source, bool strict) const {
    std::vector<std::string> problems = unfit_;
    if (strict && !missing_.empty()) problems.push_back("missing " + quoted(missing_));
    if (strict && !unexpected_.empty()) problems.push_back("unexpected " + quoted(unexpected_));
    if (problems.empty()) return;
    fail("load: {}: {}; nothing was changed", source, fmt::join(problems, "; "));
  }

  void copy() const {
    for (auto [to, from] : copies_) to.copy_(from);
  }

 private:
  void add(const Walk& walk, const std::vector<std::size_t>& group, const State& state) {
    std::vector<State::const_iterator> given;
    for (std::size_t i : group) {
      if (const auto found = state.find(walk.entries[i].name); found != state.end()) given.push_back(found);
    }
    const Entry& e = walk.entries[group.front()];
    if (given.empty()) {
      missing_.push_back(e.name);
      return;
    }
    for (const auto& one : given) {
      const auto& [name, tensor] = *one;
      if (tensor.shape() != e.view.shape()) {
        unfit_.push_back(
            fmt::format("'{}' is {} in the state, {} in the module", name, tensor.shape(), e.view.shape()));
      } else if (tensor.dtype() != e.view.dtype() &&
                 !(is_floating(tensor.dtype()) && is_floating(e.view.dtype()))) {
        unfit_.push_back(fmt::format("'{}' is {} in the state, {} in the module", name,
                                     rill::name(tensor.dtype()), rill::name(e.view.dtype())));
      } else if (!equal_values(tensor, given.front()->second)) {
        unfit_.push_back(fmt::format("'{}' and '{}' differ, but are one tensor in the module",
                                     given.front()->first, name));
      }
    }
    copies_.emplace_back(e.view, given.front()->second);
  }

  std::vector<std::string> missing_, unexpected_, unfit_;
  std::vector<std::pair<Tensor, Tensor>> copies_;
};

void load_into(Module& module, const NamedTensors& state, const std::string& source, bool strict) {
  const NoGrad no_grad;
  const Walk walk(module);
  const LoadPlan plan(walk, by_name(state));
  plan.throw_unless_fit(source, strict);
  plan.copy();
}

}  // namespace

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

/// Gives the part of a dense tensor with the leaf's shape that `view` is of the leaf.
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
  fail("parameter: there is no '{}'; the module has {}", name, names.empty() ? "none" : quoted(names));
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
    if (is_floating(array.dtype())) convert(array, dtype);
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

// --- state

NamedTensors Module::state_dict() const {
  const NoGrad no_grad;
  const Walk walk(*this);
  NamedTensors state;
  for (std::size_t i = 0; i < walk.entries.size(); ++i) {
    if (walk.first_of(i) == i) state.emplace_back(walk.entries[i].name, walk.entries[i].view.detach());
  }
  return state;
}

void Module::load_state_dict(const NamedTensors& state, bool strict) {
  load_into(*this, state, "state dict", strict);
}

void Module::save(const std::filesystem::path& path) const { save_safetensors(path, state_dict()); }

void Module::load(const std::filesystem::path& path) {
  load_into(*this, load_safetensors(path).tensors, path.string(), true);
}

std::vector<std::pair<std::string, std::uint64_t>> Module::counters() const {
  std::vector<std::pair<std::string, std::uint64_t>> all;
  for (const auto& [name, counter] : Walk(*this).counters) all.emplace_back(name, counter.get());
  std::sort(all.begin(), all.end());
  return all;
}

void Module::load_counters(const std::vector<std::pair<std::string, std::uint64_t>>& counters) {
  const Walk walk(*this);
  std::map<std::string, std::uint64_t> given(counters.begin(), counters.end());
  std::vector<std::string> missing, unexpected;
  for (const auto& [name, counter] : walk.counters) {
    if (!given.contains(name)) missing.push_back(name);
  }
  for (const auto& [name, value] : given) {
    const auto has_name = [&](const auto& known) { return known.first == name; };
    if (std::none_of(walk.counters.begin(), walk.counters.end(), has_name)) unexpected.push_back(name);
  }
  check(missing.empty() && unexpected.empty(),
        "load_counters: missing [{}], unexpected [{}]; they belong to another module", quoted(missing),
        quoted(unexpected));
  for (const auto& [name, counter] : walk.counters) counter.set(given[name]);
}

void copy_state(const Module& from, Module& to) {
  const NoGrad no_grad;
  const Walk source(from), target(to);
  check(source.entries.size() == target.entries.size() && source.modules.size() == target.modules.size(),
        "clone: the copy has {} tensors and the original {}; the options must say all that the constructor "
        "needs",
        target.entries.size(), source.entries.size());
  for (std::size_t i = 0; i < source.entries.size(); ++i) {
    const Entry &a = source.entries[i], &b = target.entries[i];
    check(a.name == b.name && a.view.shape() == b.view.shape(),
          "clone: '{}' {} of the original is '{}' {} in the copy; the options must say all that the "
          "constructor needs",
          a.name, a.view.shape(), b.name, b.view.shape());
    check(source.first_of(i) == target.first_of(i),
          "clone: '{}' is tied in one of original and copy only; tie it in the constructor", a.name);
  }
  for (std::size_t i = 0; i < source.entries.size(); ++i) {
    Tensor leaf = target.entries[i].leaf;
    convert(leaf, source.entries[i].leaf.dtype());
    if (source.entries[i].trained) leaf.set_requires_grad(source.entries[i].leaf.requires_grad());
  }
  to.load_state_dict(from.state_dict());
  to.load_counters(from.counters());
  for (std::size_t i = 0; i < source.modules.size(); ++i) {
    target.modules[i]->training_ = source.modules[i]->training_;
  }
}

}  // namespace rill::nn
