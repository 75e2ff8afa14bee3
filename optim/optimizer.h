/// The base of all optimisers: parameter groups, optimiser state and the update pass.
///
///   optim::Adam adam(model.parameters(), {.lr = 1e-3});
///   for (…) {
///     adam.zero_grad();
///     loss(…).backward();
///     adam.step();
///   }
///
/// Names, formulas and defaults are PyTorch's. A parameter is a leaf, a dense tensor; a step modifies it in
/// place and counts as one modification of its contents. Parameters without a gradient, and their state, are
/// unchanged. A step runs on several threads and is bitwise the same for any number of them. Denormals are
/// flushed to zero, since decaying moments would otherwise slow it down a hundredfold.
///
/// Thread safety: an optimiser needs exclusive access, and during a step no other thread may use its
/// parameters. Optimisers of different parameters are independent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <rill/core/io/safetensors.h>
#include <rill/optim/parameters.h>

#pragma GCC visibility push(default)

namespace rill::kernels {
template <class T>
struct Arrays;
}

namespace rill::optim {

namespace detail {
class Flat;
}

/// Parameters with their own options.
template <class Options>
struct ParameterGroup {
  Parameters params;  ///< of the group
  Options options;    ///< of the group
};

/// The result of Optimizer::step_clipped.
struct ClippedStep {
  double norm = 0;       ///< of all gradients, before clipping
  bool applied = false;  ///< false if the norm was not finite: nothing has changed but skipped_steps()
};

/// The base of all optimisers. Thread safety: a step modifies parameters and state and needs exclusive access
/// to both; it runs on the thread team itself.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;  // schedules keep a reference
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates every parameter that has a gradient. Throws if none has one, and, naming the parameter, if one
  /// was converted (Module::to) since the optimiser was constructed.
  void step();
  /// The same with the gradients scaled by min(1, max_norm / (norm + 1e-6)), where norm is grad_norm of all
  /// gradients with `norm_type`. A step whose norm is not finite is skipped and counted. The gradients
  /// themselves are unchanged: scaling is part of the update pass.
  ClippedStep step_clipped(double max_norm, double norm_type = 2);
  /// The number of skipped steps.
  std::int64_t skipped_steps() const noexcept { return skipped_steps_; }

  /// Drops the gradients of all parameters.
  void zero_grad();

  /// The number of parameter groups.
  int groups() const noexcept { return static_cast<int>(lrs_.size()); }
  /// The learning rate of a group.
  double lr(int group = 0) const;
  /// Sets the learning rate of all groups, or of one; throws unless it is finite and at least 0.
  void set_lr(double lr);
  void set_lr(double lr, int group);

  /// A snapshot: "lr" [groups], "skipped_steps", and for each parameter "name.step" and copies of its state,
  /// such as "name.exp_avg", of the leaf's shape. A name already used in an earlier group gets the group
  /// index as a prefix, "1.weight".
  NamedTensors state() const;
  /// Restores the result of state(). Throws, and changes nothing, unless names, shapes and dtypes match;
  /// lists the mismatches.
  void load_state(const NamedTensors& state);
  /// Throws if load_state would.
  void check_state(const NamedTensors& state) const { matched_state(state); }

  /// PyTorch's name of the algorithm.
  const std::string& name() const noexcept { return name_; }

 protected:
  /// A parameter and its state, as passed to the formula.
  struct Parameter {
    std::string name;             ///< full name
    int group = 0;                ///< index of its group
    std::int64_t steps = 0;       ///< updates, including the current one
    std::array<Tensor, 3> state;  ///< of the parameter's shape
  };
  /// The state tensors of one group: names of the slots of `Parameter::state` (null: none) and their initial
  /// value.
  struct StateSpec {
    std::array<const char*, 3> names{};  ///< null: no such slot
    double initial = 0;                  ///< value of every element at the start
  };

  /// `name`: PyTorch's.
  explicit Optimizer(std::string name) : name_(std::move(name)) {}

  /// Called by constructors, for each group. Throws for a tensor that is not a leaf that requires a gradient.
  void add_group(const Parameters& parameters, double lr, const StateSpec& spec);
  /// Called at the end of constructors; throws if two parameters share elements.
  void finish_groups();
  /// Throws "Adam: eps is -1; it must be at least 0" unless ok.
  void check_option(bool ok, const char* option, double value, const char* range) const;
  /// Throws unless the value is finite and at least 0.
  void check_not_negative(const char* option, double value) const;

  /// The update of one parameter: a kernel for float and double, with its coefficients bound.
  class Update {
   public:
    Update() = default;
    /// `kernel(arrays)` updates n elements, for kernels::Arrays<float> and kernels::Arrays<double>.
    template <class Kernel>
    Update(Kernel kernel)
        : of_float_([kernel](const kernels::Arrays<float>& arrays) { kernel(arrays); }),
          of_double_([kernel](const kernels::Arrays<double>& arrays) { kernel(arrays); }) {}

    /// Runs the kernel.
    void operator()(const kernels::Arrays<float>& arrays) const { of_float_(arrays); }
    /// Runs the kernel.
    void operator()(const kernels::Arrays<double>& arrays) const { of_double_(arrays); }

   private:
    std::function<void(const kernels::Arrays<float>&)> of_float_;
    std::function<void(const kernels::Arrays<double>&)> of_double_;
  };

 private:
  /// The update of a parameter whose gradient is scaled by `scale`.
  virtual Update update(const Parameter& parameter, double scale) const = 0;

  /// The tensors of a state in the order of state(); throws unless it matches.
  std::vector<Tensor> matched_state(const NamedTensors& state) const;
  void gather_gradients();
  void run(const detail::Flat& flat, double scale);

  std::string name_;
  std::vector<double> lrs_;
  std::vector<StateSpec> specs_;
  std::vector<Tensor> tensors_;        // the parameters
  std::vector<Parameter> parameters_;  // likewise
  std::vector<Tensor> gradients_;      // of the running step; undefined where there is none
  std::int64_t skipped_steps_ = 0;
};

}  // namespace rill::optim

#pragma GCC visibility pop
