/// Modules: objects that own named parameters.
///
/// A module lists its members once, in `members`; parameters, state dict, loading, modes, conversion and
/// printing are walks over that list. Names and shapes are PyTorch's. A module moves but is not copied:
/// `nn::clone` makes a deep copy.
///
/// A leaf, the array that gradients are accumulated for and that optimisers change, is dense. Where a layer
/// stores a parameter transposed, or several in one leaf, `parameters()` gives the leaves and
/// `named_parameters()` the views of them that bear PyTorch's names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <rill/core/autograd.h>
#include <rill/core/io/safetensors.h>
#include <rill/core/ops.h>
#include <rill/core/random.h>
#include <rill/core/tensor.h>

#pragma GCC visibility push(default)

namespace rill::nn {

class Module;

/// A parameter in PyTorch's shape: the leaf itself, or a view of it. Computing with it is recorded like any
/// view of a leaf. The methods below are those of the leaf; copied to a plain Tensor it is just the view.
struct ParameterView : Tensor {
  ParameterView(const Tensor& whole) : Tensor(whole), leaf(whole) {}                     ///< a whole leaf
  ParameterView(const Tensor& view, const Tensor& whole) : Tensor(view), leaf(whole) {}  ///< a view of one
  ParameterView(const ParameterView&) = default;
  ParameterView(ParameterView&&) noexcept = default;
  ~ParameterView() = default;
  ParameterView& operator=(const ParameterView&) & = default;  // of an lvalue, as of a Tensor
  ParameterView& operator=(ParameterView&&) & noexcept = default;

  Tensor leaf;  ///< the dense array that stores it, perhaps with other parameters

  /// The same view of the leaf's gradient; undefined without one. Throws when Module::to came between.
  Tensor grad() const;
  /// Forgets the leaf's gradient.
  void zero_grad() { leaf.zero_grad(); }
  /// The hook sees, and may replace, this view of the leaf's gradient.
  void register_hook(std::function<Tensor(const Tensor&)> hook) const;
  /// Of the whole leaf, as for the gates of a RAU.
  ParameterView& set_requires_grad(bool wanted = true);
};

/// Parameters under PyTorch's names.
using NamedParameters = std::vector<std::pair<std::string, ParameterView>>;

/// A leaf of a module: a dense tensor under its first name.
struct Parameter : Tensor {
  std::string name;       ///< PyTorch's
  NamedParameters views;  ///< each parameter that it stores, once
};

/// The names that a load skipped, in PyTorch's words.
struct IncompatibleKeys {
  std::vector<std::string> missing_keys;     ///< of the module, not in the state: these keep their values
  std::vector<std::string> unexpected_keys;  ///< in the state, not of the module
};

/// The visitor that `Module::members` fills: called with each member's name and the member.
class Members {
 public:
  /// Makes a named parameter of the leaf that stores it: transposed, or some rows or columns.
  using View = std::function<Tensor(const Tensor&)>;

  virtual ~Members() = default;

  /// A parameter; an undefined tensor (an absent bias) is passed over.
  Members& operator()(std::string_view name, Tensor& parameter);
  /// A parameter that is a view of a stored leaf.
  Members& operator()(std::string_view name, Tensor& leaf, View view);
  /// A child; its members' names start with "name.". An empty name adds nothing.
  Members& operator()(std::string_view name, Module& child);
  /// Children name.0, name.1, …
  template <class M>
  requires std::is_base_of_v<Module, M> Members& operator()(std::string_view name, std::vector<M>& children) {
    for (std::size_t i = 0; i < children.size(); ++i) {
      (*this)(std::string(name) + '.' + std::to_string(i), static_cast<Module&>(children[i]));
    }
    return *this;
  }
  /// A tensor that is saved and loaded but not trained.
  Members& buffer(std::string_view name, Tensor& buffer);
  /// A seed or counter of a random stream: part of the resume state, not of the state dict.
  Members& counter(std::string_view name, std::uint64_t& counter);
  /// A generator that the module draws from: counters name.seed, name.stream and name.counter.
  Members& rng(std::string_view name, Rng& rng);

 protected:
  /// Reads and sets a counter.
  struct Counter {
    std::function<std::uint64_t()> get;      ///< its value
    std::function<void(std::uint64_t)> set;  ///< changes it
  };

  // --- called for each member under its full name; a child's own members follow it
  virtual void on_parameter(const std::string& name, Tensor& leaf, const View* view) = 0;
  virtual void on_buffer(const std::string&, Tensor&) {}
  virtual void on_counter(const std::string&, Counter) {}
  virtual void on_module(const std::string&, Module&) {}

 private:
  std::string full_name(std::string_view name) const;
  std::string prefix_;
};

/// The base of every layer and model.
///
/// Threads: calls (forward passes) of one module may run on several threads at once. Whatever changes a
/// module or its parameters (modes, conversion, loading, a step of an optimiser) needs every other thread to
/// stay away meanwhile, and so does reading its counters while it trains.
class Module {
 public:
  virtual ~Module() = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Lists the members in PyTorch's order.
  virtual void members(Members& m) = 0;

  /// The leaves, each once: what optimisers and clipping take.
  std::vector<Parameter> parameters() const;
  /// Every parameter in PyTorch's shape under its full name, tied ones under each of their names.
  NamedParameters named_parameters() const;
  /// The parameter `name`; throws listing the names there are.
  ParameterView parameter(std::string_view name) const;
  /// The gradients by the names and in the shapes of named_parameters(); undefined where there is none.
  NamedTensors named_grads() const;
  /// The gradient of the parameter `name`.
  Tensor grad(std::string_view name) const { return parameter(name).grad(); }
  /// Elements of all parameters, tied ones counted once.
  std::int64_t num_parameters() const;

  /// Parameters and buffers, detached; tied ones under their first name only.
  NamedTensors state_dict() const;
  /// Copies values in (any floating dtype). Throws, and changes nothing, unless all fit, and lists what does
  /// not: names that are missing or unexpected, and tensors that are undefined or of another shape. Without
  /// `strict`, missing and unexpected names are skipped and returned; other faults still throw, as in
  /// PyTorch. Tied names may be absent or equal.
  IncompatibleKeys load_state_dict(const NamedTensors& state, bool strict = true);
  /// The state dict as a safetensors file, written atomically.
  void save(const std::filesystem::path& path) const;
  /// Takes back what save() wrote, as load_state_dict does.
  IncompatibleKeys load(const std::filesystem::path& path, bool strict = true);
  /// Seeds and counters of random streams, in order of their names; for resuming a training run exactly.
  std::vector<std::pair<std::string, std::uint64_t>> counters() const;
  void load_counters(const std::vector<std::pair<std::string, std::uint64_t>>& counters);

  /// Training or evaluation mode (dropout), for this module and all within.
  void train(bool on = true);
  void eval() { train(false); }
  bool training() const noexcept { return training_; }
  void zero_grad();
  void set_requires_grad(bool wanted);
  /// Converts all floating parameters and buffers in place; gradients are dropped. Optimisers made before
  /// must be made anew.
  void to(DType dtype);
  /// One line a parameter: name, dtype, shape; and the count.
  std::string to_string() const;

 protected:
  Module() = default;

 private:
  friend void copy_state(const Module& from, Module& to);
  bool training_ = true;
};

/// A deep copy: a new module of m's options with m's values, requires_grad, mode and counters. M needs
/// `options()` and a constructor from (options, Rng&), as all modules of rill have.
template <class M>
M clone(const M& m) {
  Rng rng(0);
  M copy(m.options(), rng);
  copy_state(m, copy);
  return copy;
}
/// Copies values, dtype, mode, requires_grad and counters between modules with the same members.
void copy_state(const Module& from, Module& to);

namespace detail {
/// Throws "op: …" for a module whose weights went to another one.
inline void check_not_moved_from(const char* op, bool has_weights) {
  check(has_weights, "{}: the module was moved from; it has no weights", op);
}
}  // namespace detail

}  // namespace rill::nn

#pragma GCC visibility pop
