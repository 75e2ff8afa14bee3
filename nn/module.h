/// Modules: things that own named parameters.
///
/// A module lists its members once, in `members`; parameters, state dict, loading, modes, conversion and
/// printing are walks over that list. Names are PyTorch's. A module moves but is not copied: `nn::clone`
/// makes a deep copy.
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
#include <rill/core/ops.h>
#include <rill/core/random.h>
#include <rill/core/tensor.h>

#pragma GCC visibility push(default)

namespace rill::nn {

class Module;

/// A name and a tensor that shares the module's data.
using NamedParameters = std::vector<std::pair<std::string, Tensor>>;

/// What `Module::members` fills: called with each member's name and the member.
class Members {
 public:
  /// How a named parameter lies within the array that stores it.
  using View = std::function<Tensor(const Tensor&)>;

  virtual ~Members() = default;

  /// A parameter; an undefined tensor (an absent bias) is passed over.
  Members& operator()(std::string_view name, const Tensor& parameter);
  Members& operator()(std::string_view, const Tensor&&) = delete;  // the module's own handle, not a temporary
  /// A parameter that is a view of a stored array: transposed, or some rows or columns of it. The array is
  /// the leaf.
  Members& operator()(std::string_view name, const Tensor& array, View view);
  Members& operator()(std::string_view, const Tensor&&, View) = delete;
  /// A child; its members' names start with "name.". An empty name adds nothing.
  Members& operator()(std::string_view name, const Module& child);
  /// Children name.0, name.1, …
  template <class M>
  requires std::is_base_of_v<Module, M> Members& operator()(std::string_view name,
                                                            const std::vector<M>& children) {
    for (std::size_t i = 0; i < children.size(); ++i) {
      (*this)(std::string(name) + '.' + std::to_string(i), static_cast<const Module&>(children[i]));
    }
    return *this;
  }
  /// A tensor that is saved and loaded but not trained.
  Members& buffer(std::string_view name, const Tensor& buffer);
  /// A seed or counter of a random stream: part of the resume state, not of the state dict.
  Members& counter(std::string_view name, const std::uint64_t& counter);

 protected:
  virtual void on_parameter(const std::string& name, const Tensor& array, const View* view) = 0;
  virtual void on_buffer(const std::string&, const Tensor&) {}
  virtual void on_counter(const std::string&, const std::uint64_t&) {}
  virtual void on_module(const std::string&, const Module&) {}

 private:
  std::string full_name(std::string_view name) const;
  std::string prefix_;
};

/// The base of every layer and model.
class Module {
 public:
  virtual ~Module() = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Lists the members in PyTorch's order.
  virtual void members(Members& m) const = 0;

  /// Every parameter under its full name, tied ones under each of their names. Handles: they share data and
  /// gradients.
  NamedParameters named_parameters() const;
  /// What optimisers take: every array that stores parameters, once. Where a layer stores several parameters
  /// in one array, or one transposed, this is that array, and the named parameters are views of it.
  std::vector<Tensor> parameters() const;
  /// The parameter `name`; throws listing the names there are.
  Tensor parameter(std::string_view name) const;
  /// Numbers in all parameters, tied ones counted once.
  std::int64_t num_parameters() const;

  /// Parameters and buffers, detached; tied ones under their first name only.
  NamedParameters state_dict() const;
  /// Copies values in (any floating dtype). Throws, and changes nothing, unless names and shapes fit: lists
  /// all missing, unexpected and mis-shaped ones. Strict unless told otherwise; tied names may be absent or
  /// equal.
  void load_state_dict(const NamedParameters& state, bool strict = true);
  /// The state dict as a safetensors file, written atomically.
  void save(const std::filesystem::path& path) const;
  void load(const std::filesystem::path& path);
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

}  // namespace rill::nn

#pragma GCC visibility pop
