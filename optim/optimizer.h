/// The base of all optimisers: parameters in groups, their state, the pass that updates them.
///
///   optim::Adam adam(model.parameters(), {.lr = 1e-3});
///   for (…) {
///     adam.zero_grad();
///     loss(…).backward();
///     adam.step();
///   }
///
/// Names, formulas and defaults are PyTorch's. A parameter is a leaf, a dense tensor; a step changes it in
/// place and counts as one change of its contents. Parameters without a gradient are left alone and their
/// state does not move. A step runs on several threads and gives the same bits on any number of them. While
/// it runs, denormal numbers are zero (moments that decay for ever would make it a hundred times slower).
///
/// Thread safety: one thread at a time may use an optimiser, and while it steps none may use its parameters.
/// Optimisers of different parameters are independent.
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

/// Parameters with options of their own.
template <class Options>
struct ParameterGroup {
  Parameters params;  ///< of the group
  Options options;    ///< of the group
};

/// The result of Optimizer::step_clipped.
struct ClippedStep {
  double norm = 0;       ///< of all gradients, before clipping
  bool applied = false;  ///< false when the norm was not finite: nothing has changed but skipped_steps()
};

/// The base of all optimisers. Threads: a step changes parameters and state, so every other thread has to
/// stay away from both meanwhile; it uses the team of threads itself.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;  // schedules refer to it
  Optimizer& operator=(const Optimizer&) = delete;

  /// Changes every parameter that has a gradient. Throws when none has one, and, naming the parameter, when
  /// one was converted (Module::to) since the optimiser was made.
  void step();
  /// The same with the gradients scaled by min(1, max_norm / (norm + 1e-6)), norm being that of all gradients
  /// in the `norm_type` sense of grad_norm. A step whose norm is not finite is skipped and counted. The
  /// gradients themselves stay as they are: scaling is part of the one pass over all elements.
  ClippedStep step_clipped(double max_norm, double norm_type = 2);
  /// The number of steps skipped so far.
  std::int64_t skipped_steps() const noexcept { return skipped_steps_; }

  /// Forgets the gradients of all parameters.
  void zero_grad();

  /// The number of parameter groups.
  int groups() const noexcept { return static_cast<int>(lrs_.size()); }
  /// The learning rate of a group.
  double lr(int group = 0) const;
  /// Sets the learning rate of all groups, or of one; throws unless it is finite and at least 0.
  void set_lr(double lr);
  void set_lr(double lr, int group);

  /// A snapshot: "lr" [groups], "skipped_steps", and for each parameter "name.step" and its state, such as
  /// "name.exp_avg", of the leaf's shape, copied. A name that an earlier group has gets the number of its
  /// group in front, "1.weight".
  NamedTensors state() const;
  /// Takes back what state() gave. Throws, and changes nothing, unless names, shapes and dtypes fit; lists
  /// what does not.
  void load_state(const NamedTensors& state);
  /// Throws if load_state would.
  void check_state(const NamedTensors& state) const { matched_state(state); }

  /// PyTorch's name of the algorithm.
  const std::string& name() const noexcept { return name_; }

 protected:
  /// A parameter as a formula needs it.
  struct Parameter {
    std::string name;             ///< full name
    int group = 0;                ///< index of its group
    std::int64_t steps = 0;       ///< updates, the running one included
    std::array<Tensor, 3> state;  ///< of the parameter's shape
  };
  /// The state tensors of one group: names for the slots of `Parameter::state` (null: none) and the value
  /// they begin with.
  struct StateSpec {
    std::array<const char*, 3> names{};  ///< null: no such slot
    double initial = 0;                  ///< value of every element at the start
  };

  /// `name`: PyTorch's.
  explicit Optimizer(std::string name) : name_(std::move(name)) {}

  /// Called by constructors, for each group. Throws on what is no parameter.
  void add_group(const Parameters& parameters, double lr, const StateSpec& spec);
  /// Called by constructors at their end; throws when two parameters share elements.
  void finish_groups();
  /// Throws "Adam: eps is -1; it must be at least 0" unless ok.
  void check_option(bool ok, const char* option, double value, const char* range) const;
  /// Throws unless the value is finite and at least 0.
  void check_not_negative(const char* option, double value) const;

  /// The update of one parameter: a kernel of the arithmetic of float and double with its coefficients.
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
  /// The update of a parameter whose gradient is to be multiplied by `scale`.
  virtual Update update(const Parameter& parameter, double scale) const = 0;

  /// The tensors of a state in the order of state(); throws unless it fits.
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
