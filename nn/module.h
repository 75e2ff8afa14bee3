/// Modules: objects that own named parameters.
///
/// A module lists its members once, in `members`; parameters, state dict, loading, modes, conversion and
/// printing all iterate over that list. Names and shapes are PyTorch's. Modules are movable but not copyable;
/// `nn::clone` makes a deep copy.
///
/// A leaf, the array that accumulates a gradient and that optimisers update, is dense. A layer may store a
/// parameter transposed, or several in one leaf: `parameters()` returns the leaves, and `named_parameters()`
/// the views of them that have PyTorch's names and shapes.
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

/// A parameter in PyTorch's shape: the leaf itself, or a view of it. Operations on it are recorded like those
/// on any view of a leaf. The methods below act on the leaf; copied to a plain Tensor it is just the view.
struct ParameterView : Tensor {
  ParameterView(const Tensor& whole) : Tensor(whole), leaf(whole) {}                     ///< the whole leaf
  ParameterView(const Tensor& view, const Tensor& whole) : Tensor(view), leaf(whole) {}  ///< a view of a leaf
  ParameterView(const ParameterView&) = default;
  ParameterView(ParameterView&&) noexcept = default;
  ~ParameterView() = default;
  ParameterView& operator=(const ParameterView&) & = default;  // of an lvalue, as of a Tensor
  ParameterView& operator=(ParameterView&&) & noexcept = default;

  Tensor leaf;  ///< the dense array that stores it, possibly together with other parameters

  /// The corresponding view of the leaf's gradient; undefined if there is none. Throws if the module was
  /// converted by Module::to since.
  Tensor grad() const;
  /// Drops the leaf's gradient.
  void zero_grad() { leaf.zero_grad(); }
  /// The hook gets, and may replace, this view of the leaf's gradient.
  void register_hook(std::function<Tensor(const Tensor&)> hook) const;
  /// Sets it for the whole leaf, for example for all gates of a RAU.
  ParameterView& set_requires_grad(bool wanted = true);
};

/// Parameters under PyTorch's names.
using NamedParameters = std::vector<std::pair<std::string, ParameterView>>;

/// A leaf of a module: a dense tensor under its first name.
struct Parameter : Tensor {
  std::string name;       ///< PyTorch's
  NamedParameters views;  ///< the parameters that it stores, each once
};

/// The names skipped by a non-strict load, in PyTorch's terms.
struct IncompatibleKeys {
  std::vector<std::string> missing_keys;     ///< of the module but not in the state; these keep their values
  std::vector<std::string> unexpected_keys;  ///< in the state but not of the module
};

/// The visitor passed to `Module::members`, called with each member and its name.
class Members {
 public:
  /// Maps a leaf to the named parameter that it stores: its transpose, or some rows or columns.
  using View = std::function<Tensor(const Tensor&)>;

  virtual ~Members() = default;

  /// A parameter; an undefined tensor (an absent bias) is skipped.
  Members& operator()(std::string_view name, Tensor& parameter);
  /// A parameter that is a view of a stored leaf.
  Members& operator()(std::string_view name, Tensor& leaf, View view);
  /// A child module; the names of its members get the prefix "name.". An empty name adds no prefix.
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
  /// A generator that the module draws from, as the counters name.seed, name.stream and name.counter.
  Members& rng(std::string_view name, Rng& rng);

 protected:
  /// Access to a counter.
  struct Counter {
    std::function<std::uint64_t()> get;      ///< returns the value
    std::function<void(std::uint64_t)> set;  ///< sets the value
  };

  // --- called for each member with its full name; the members of a child follow it
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
/// Thread safety: forward passes of one module may run concurrently. Anything that modifies a module or its
/// parameters (modes, conversion, loading, an optimiser step) needs exclusive access, and so does reading its
/// counters while it trains.
class Module {
 public:
  virtual ~Module() = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Calls m for each member, in PyTorch's order.
  virtual void members(Members& m) = 0;

  /// The leaves, each once, as optimisers and clipping take them.
  std::vector<Parameter> parameters() const;
  /// Every parameter in PyTorch's shape under its full name; tied parameters under each of their names.
  NamedParameters named_parameters() const;
  /// The parameter `name`; throws listing the existing names.
  ParameterView parameter(std::string_view name) const;
  /// The gradients by the names and in the shapes of named_parameters(); undefined where there is none.
  NamedTensors named_grads() const;
  /// The gradient of the parameter `name`.
  Tensor grad(std::string_view name) const { return parameter(name).grad(); }
  /// Number of elements of all parameters; tied ones count once.
  std::int64_t num_parameters() const;

  /// Parameters and buffers, detached; tied ones under their first name only.
  NamedTensors state_dict() const;
  /// Copies the values (any floating dtype). Throws, and changes nothing, unless everything matches; lists
  /// names that are missing or unexpected and tensors that are undefined or have a different shape. Without
  /// `strict`, missing and unexpected names are skipped and returned; other mismatches still throw, as in
  /// PyTorch. Tied names may be absent or must be equal.
  IncompatibleKeys load_state_dict(const NamedTensors& state, bool strict = true);
  /// Writes the state dict to a safetensors file, atomically.
  void save(const std::filesystem::path& path) const;
  /// Loads a file written by save(), like load_state_dict.
  IncompatibleKeys load(const std::filesystem::path& path, bool strict = true);
  /// Seeds and counters of random streams, sorted by name; for resuming a training run exactly.
  std::vector<std::pair<std::string, std::uint64_t>> counters() const;
  void load_counters(const std::vector<std::pair<std::string, std::uint64_t>>& counters);

  /// Sets training or evaluation mode (dropout) for this module and all its children.
  void train(bool on = true);
  void eval() { train(false); }
  bool training() const noexcept { return training_; }
  void zero_grad();
  void set_requires_grad(bool wanted);
  /// Converts all floating parameters and buffers in place and drops gradients. Optimisers must be
  /// constructed afterwards.
  void to(DType dtype);
  /// One line per parameter (name, dtype, shape) and the number of elements.
  std::string to_string() const;

 protected:
  Module() = default;

 private:
  friend void copy_state(const Module& from, Module& to);
  bool training_ = true;
};

/// A deep copy: a new module with m's options, values, requires_grad, mode and counters. M needs `options()`
/// and a constructor from (options, Rng&), as all modules of rill have.
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
/// Throws "op: …" for a module that was moved from.
inline void check_not_moved_from(const char* op, bool has_weights) {
  check(has_weights, "{}: the module was moved from; it has no weights", op);
}
}  // namespace detail

}  // namespace rill::nn

#pragma GCC visibility pop
