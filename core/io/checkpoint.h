/// Checkpoints for exact resumption of training: the state of several objects in one file.
///
///   Checkpoint checkpoint;
///   checkpoint.add("model", model).add("optimizer", adam).add("schedule", schedule);
///   checkpoint.add("rng", rng).add("step", step);
///   checkpoint.save("run.safetensors");
///   …
///   checkpoint.load("run.safetensors");  // in another process: restores all objects
///
/// The format is safetensors, with names such as "model/encoder.weight" and "optimizer/lr".
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rill/core/io/safetensors.h>
#include <rill/core/random.h>

#pragma GCC visibility push(default)

namespace rill {

/// A type whose state can be saved and restored as named tensors: optimisers, schedules, user-defined types.
/// load_state throws and changes nothing if the state does not fit; an optional `check_state(state) const`
/// throws for the same states.
template <class T>
concept Stateful = requires(T& object, const T& fixed, const NamedTensors& state) {
  { fixed.state() } -> std::convertible_to<NamedTensors>;
  object.load_state(state);
};

/// A type with a state dict and counters of random streams, such as nn::Module.
template <class T>
concept StatefulModule = requires(T& object, const T& fixed, const NamedTensors& state) {
  { fixed.state_dict() } -> std::convertible_to<NamedTensors>;
  object.load_state_dict(state);
  object.load_counters(fixed.counters());
};

/// A set of objects whose state is saved and loaded together. The objects must outlive the checkpoint.
class Checkpoint {
 public:
  /// Free-form text by name.
  using Metadata = std::map<std::string, std::string>;

  Checkpoint() = default;
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  /// Adds an object. Throws if the name is empty, contains '/' or is already in use.
  template <Stateful T>
  Checkpoint& add(std::string_view name, T& object);
  /// Adds a module: its state dict and the counters of its random streams.
  template <StatefulModule T>
  Checkpoint& add(std::string_view name, T& module);
  /// Adds a random number generator.
  Checkpoint& add(std::string_view name, Rng& rng);
  /// Adds an integer, such as the index of the next batch.
  Checkpoint& add(std::string_view name, std::int64_t& counter);
  /// Adds a floating-point value.
  Checkpoint& add(std::string_view name, double& value);

  /// The state of all objects. Tensors may share data with the objects.
  NamedTensors state() const;
  /// Restores a state(). If any part does not fit, throws, listing all mismatches, and changes nothing.
  void load_state(const NamedTensors& state);

  /// Writes state() and metadata to a file, atomically.
  void save(const std::filesystem::path& path, const Metadata& metadata = {}) const;
  /// Restores a file written by save() and returns the metadata. Throws as load_state and load_safetensors,
  /// naming the file.
  Metadata load(const std::filesystem::path& path);

 private:
  struct Section {
    std::string name;
    std::function<NamedTensors()> state;
    std::function<void(const NamedTensors&)> check, load;
  };
  Checkpoint& add_section(Section section);

  std::vector<Section> sections_;
};

namespace detail {

/// The tensors of `state` in the order of `expected`. Throws "op: …" listing every missing, unexpected or
/// duplicate name and every tensor that is undefined or differs in shape or dtype.
std::vector<Tensor> match_state(std::string_view op, const NamedTensors& expected, const NamedTensors& state);

using Counters = std::vector<std::pair<std::string, std::uint64_t>>;
/// Merges a state dict and counters into one state, and the inverse.
NamedTensors with_counters(NamedTensors state_dict, const Counters& counters);
std::pair<NamedTensors, Counters> without_counters(const NamedTensors& state);

}  // namespace detail

// --- definitions

template <Stateful T>
Checkpoint& Checkpoint::add(std::string_view name, T& object) {
  const auto check_fits = [name = std::string(name), &object](const NamedTensors& state) {
    if constexpr (requires(const T& fixed) { fixed.check_state(state); }) {
      std::as_const(object).check_state(state);
    } else {
      detail::match_state(name, object.state(), state);
    }
  };
  return add_section({std::string(name), [&object] { return NamedTensors(std::as_const(object).state()); },
                      check_fits, [&object](const NamedTensors& state) { object.load_state(state); }});
}

template <StatefulModule T>
Checkpoint& Checkpoint::add(std::string_view name, T& module) {
  const auto state = [&module] { return detail::with_counters(module.state_dict(), module.counters()); };
  const auto check_fits = [name = std::string(name), state](const NamedTensors& given) {
    detail::match_state(name, state(), given);
  };
  return add_section({std::string(name), state, check_fits, [&module](const NamedTensors& given) {
                        const auto [state_dict, counters] = detail::without_counters(given);
                        module.load_state_dict(state_dict);
                        module.load_counters(counters);
                      }});
}

}  // namespace rill

#pragma GCC visibility pop
