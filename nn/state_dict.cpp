// State dicts, files and counters of modules, and copies between modules.
#include <rill/nn/module.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <rill/nn/walk.h>

namespace rill::nn {

using detail::Entry;
using detail::quoted;
using detail::Walk;

namespace {

using State = std::map<std::string, Tensor>;

State by_name(const NamedTensors& state, const std::string& source) {
  State found;
  for (const auto& [name, tensor] : state) {
    check(found.emplace(name, tensor).second, "load: {}: two tensors are named '{}'; remove one", source,
          name);
  }
  return found;
}

/// The names in `named` that are not in `known`.
template <class Known, class Named>
std::vector<std::string> names_not_in(const Known& known, const Named& named) {
  std::vector<std::string> names;
  for (const auto& [name, value] : named) {
    if (!known.contains(name)) names.push_back(name);
  }
  return names;
}

/// Whether all elements are equal; NaN equals NaN.
bool equal_values(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined() || a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  const Tensor dense_a = a.detach().contiguous(), dense_b = b.detach().contiguous();
  return visit(a.dtype(), [&]<class T>(Type<T>) {
    const std::span<const T> x = dense_a.span<T>(), y = dense_b.span<T>();
    return std::equal(x.begin(), x.end(), y.begin(), [](T p, T q) { return p == q || (p != p && q != q); });
  });
}

/// The names of each tensor, with tied ones grouped, in order.
std::vector<std::vector<std::size_t>> tied_groups(const Walk& walk) {
  std::map<std::size_t, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < walk.entries.size(); ++i) groups[walk.first_of(i)].push_back(i);
  std::vector<std::vector<std::size_t>> list;
  for (auto& [first, group] : groups) list.push_back(std::move(group));
  return list;
}

/// Why `given` cannot be copied to `to`; empty if it can.
std::string misfit(const std::string& name, const Tensor& given, const Tensor& to) {
  const auto differs = [&](const auto& in_state, const auto& in_module) {
    return fmt::format("'{}' is {} in the state, {} in the module", name, in_state, in_module);
  };
  if (!given.defined()) return fmt::format("'{}' is undefined in the state", name);
  if (given.shape() != to.shape()) return differs(given.shape(), to.shape());
  const bool converts = is_floating(given.dtype()) && is_floating(to.dtype());
  if (given.dtype() == to.dtype() || converts) return "";
  return differs(rill::name(given.dtype()), rill::name(to.dtype()));
}

/// The mismatches of a state, and the copies to make.
class LoadPlan {
 public:
  LoadPlan(const Walk& walk, const State& state) {
    for (const auto& group : tied_groups(walk)) add(walk, group, state);
    std::set<std::string> known;
    for (const Entry& e : walk.entries) known.insert(e.name);
    skipped_.unexpected_keys = names_not_in(known, state);
  }

  void throw_unless_fit(const std::string& source, bool strict) const {
    std::vector<std::string> problems = unfit_;
    const auto& [missing, unexpected] = skipped_;
    if (strict && !missing.empty()) problems.push_back("missing " + quoted(missing));
    if (strict && !unexpected.empty()) problems.push_back("unexpected " + quoted(unexpected));
    if (problems.empty()) return;
    fail("load: {}: {}; nothing was changed; {}", source, fmt::join(problems, "; "),
         unfit_.empty() ? "strict = false skips such names"
                        : "load the state of a module with the same options");
  }

  /// Makes the copies and returns the skipped names.
  IncompatibleKeys run() && {
    for (auto& [to, from] : copies_) to.copy_(from);
    return std::move(skipped_);
  }

 private:
  /// Plans the copy to one tensor of the module, which may have several names.
  void add(const Walk& walk, const std::vector<std::size_t>& group, const State& state) {
    const Entry& e = walk.entries[group.front()];
    std::vector<State::const_iterator> given;
    for (std::size_t i : group) {
      const auto found = state.find(walk.entries[i].name);
      if (found == state.end()) continue;
      given.push_back(found);
      const std::string fault = misfit(found->first, found->second, e.view);
      if (!fault.empty()) {
        unfit_.push_back(fault);
      } else if (given.size() > 1 && !equal_values(found->second, given.front()->second)) {
        unfit_.push_back(fmt::format("'{}' and '{}' differ, but are one tensor in the module",
                                     given.front()->first, found->first));
      }
    }
    if (given.empty()) {
      skipped_.missing_keys.push_back(e.name);
    } else {
      copies_.emplace_back(e.view, given.front()->second);
    }
  }

  std::vector<std::string> unfit_;
  IncompatibleKeys skipped_;
  std::vector<std::pair<Tensor, Tensor>> copies_;
};

IncompatibleKeys load_into(Module& module, const NamedTensors& state, const std::string& source,
                           bool strict) {
  const NoGrad no_grad;
  const Walk walk(module);
  LoadPlan plan(walk, by_name(state, source));
  plan.throw_unless_fit(source, strict);
  return std::move(plan).run();
}

}  // namespace

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

IncompatibleKeys Module::load_state_dict(const NamedTensors& state, bool strict) {
  return load_into(*this, state, "state dict", strict);
}

void Module::save(const std::filesystem::path& path) const { save_safetensors(path, state_dict()); }

IncompatibleKeys Module::load(const std::filesystem::path& path, bool strict) {
  return load_into(*this, load_safetensors(path).tensors, path.string(), strict);
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
  const std::map known(walk.counters.begin(), walk.counters.end());
  const std::vector<std::string> missing = names_not_in(given, known),
                                 unexpected = names_not_in(known, given);
  check(missing.empty() && unexpected.empty(),
        "load_counters: missing [{}], unexpected [{}]; they belong to another module", quoted(missing),
        quoted(unexpected));
  for (const auto& [name, counter] : known) counter.set(given[name]);
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
    detail::convert(leaf, source.entries[i].leaf.dtype());
    if (source.entries[i].trained) leaf.set_requires_grad(source.entries[i].leaf.requires_grad());
  }
  to.load_state_dict(from.state_dict());
  to.load_counters(from.counters());
  for (std::size_t i = 0; i < source.modules.size(); ++i) {
    target.modules[i]->training_ = source.modules[i]->training_;
  }
}

}  // namespace rill::nn
