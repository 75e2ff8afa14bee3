/// Schedules: how learning rates change while training goes on.
///
///   optim::CosineAnnealingLR schedule(adam, {.T_max = epochs});
///   for (…) {
///     train_one_epoch();
///     schedule.step();
///   }
///
/// A schedule takes each group's learning rate at its construction as the base rate, sets the rate of epoch 0
/// at once, and at each step() that of the next. "Epoch" is whatever step() is called after: an epoch or a
/// batch. Rates follow from base rate and epoch alone, so set_lr() between steps does not last. Names and
/// numbers are PyTorch's, but two schedules on one optimiser do not multiply: the later one sets the rate.
/// Warm-up and decay together are one LambdaLR. The optimiser must live longer than the schedule.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <rill/optim/optimizer.h>

#pragma GCC visibility push(default)

namespace rill::optim {

/// The base of all schedules of one value per epoch. Refers to its optimiser, so it is not copied. Not to be
/// used from two threads at once.
class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  /// Goes on to the next epoch and sets its rates.
  void step();
  /// The number of calls of step().
  std::int64_t last_epoch() const noexcept { return epoch_; }
  /// The base rate of each group.
  const std::vector<double>& base_lrs() const noexcept { return base_lrs_; }

  /// "last_epoch" and "base_lrs"; options are not part of it.
  NamedTensors state() const;
  /// Takes back what state() gave and sets the rates of that epoch. Throws, and changes nothing, unless it
  /// fits.
  void load_state(const NamedTensors& state);
  /// Throws if load_state would.
  void check_state(const NamedTensors& state) const;

 protected:
  // --- of an optimiser that lives longer; throws "Name: …" for an option out of its range
  LRScheduler(std::string name, Optimizer& optimizer);
  /// Called by constructors at their end.
  void start();

  const std::string name_;  ///< PyTorch's name

 private:
  virtual double rate(double base_lr, std::int64_t epoch, int group) const = 0;
  std::vector<double> rates_of(std::int64_t epoch, const std::vector<double>& base_lrs) const;
  void go_to(std::int64_t epoch, std::vector<double> base_lrs);

  Optimizer& optimizer_;
  std::vector<double> base_lrs_;
  std::int64_t epoch_ = 0;
};

/// Options of StepLR, with PyTorch's names.
struct StepLROptions {
  std::int64_t step_size = 1;  ///< steps between reductions
  double gamma = 0.1;          ///< factor of a reduction
};
/// base · gamma^⌊epoch / step_size⌋. Throws unless step_size >= 1.
class StepLR final : public LRScheduler {
 public:
  // --- of an optimiser that lives longer; throws "Name: …" for an option out of its range
  StepLR(Optimizer& optimizer, StepLROptions options);

 private:
  double rate(double base_lr, std::int64_t epoch, int group) const override;
  StepLROptions options_;
};

/// Options of MultiStepLR, with PyTorch's names.
struct MultiStepLROptions {
  std::vector<std::int64_t> milestones = {};  ///< steps at which to reduce, ascending
  double gamma = 0.1;                         ///< factor of a reduction
};
/// base · gamma^(number of milestones at or before epoch). Milestones may come in any order and twice.
class MultiStepLR final : public LRScheduler {
 public:
  // --- of an optimiser that lives longer; throws "Name: …" for an option out of its range
  MultiStepLR(Optimizer& optimizer, MultiStepLROptions options);

 private:
  double rate(double base_lr, std::int64_t epoch, int group) const override;
  MultiStepLROptions options_;
};

/// Options of ExponentialLR, with PyTorch's names.
struct ExponentialLROptions {
  double gamma = 0.1;  ///< factor of a reduction
};
/// base · gamma^epoch.
class ExponentialLR final : public LRScheduler {
 public:
  // --- of an optimiser that lives longer; throws "Name: …" for an option out of its range
  ExponentialLR(Optimizer& optimizer, ExponentialLROptions options);

 private:
  double rate(double base_lr, std::int64_t epoch, int group) const override;
  ExponentialLROptions options_;
};

/// Options of CosineAnnealingLR, with PyTorch's names.
struct CosineAnnealingLROptions {
  std::int64_t T_max = 1;  ///< epochs from the base rate to eta_min
  double eta_min = 0;      ///< the lowest learning rate
};
/// eta_min + (base - eta_min) · (1 + cos(π epoch / T_max)) / 2: after T_max it rises again. Throws unless
/// T_max >= 1. (Loshchilov and Hutter 2017.)
class CosineAnnealingLR final : public LRScheduler {
 public:
  // --- of an optimiser that lives longer; throws "Name: …" for an option out of its range
  CosineAnnealingLR(Optimizer& optimizer, CosineAnnealingLROptions options);

 private:
  double rate(double base_lr, std::int64_t epoch, int group) const override;
  CosineAnnealingLROptions options_;
};

/// Options of LinearLR, with PyTorch's names.
struct LinearLROptions {
  double start_factor = 1.0 / 3;  ///< at the first step
  double end_factor = 1;          ///< after total_iters steps
  std::int64_t total_iters = 5;   ///< steps between them
};
/// base · a factor that goes from start_factor to end_factor in total_iters epochs and stays there: a
/// warm-up. Throws unless 0 < start_factor <= 1, 0 <= end_factor <= 1 and total_iters >= 1.
class LinearLR final : public LRScheduler {
 public:
  // --- of an optimiser that lives longer; throws "Name: …" for an option out of its range
  LinearLR(Optimizer& optimizer, LinearLROptions options = {});

 private:
  double rate(double base_lr, std::int64_t epoch, int group) const override;
  LinearLROptions options_;
};

/// base · factor(epoch), with one function for all groups or one for each.
class LambdaLR final : public LRScheduler {
 public:
  using Factor = std::function<double(std::int64_t epoch)>;  ///< of an epoch's rate

  // --- of an optimiser that lives longer; throws "Name: …" for an option out of its range
  LambdaLR(Optimizer& optimizer, Factor factor);
  // --- of an optimiser that lives longer; throws "Name: …" for an option out of its range
  LambdaLR(Optimizer& optimizer, std::vector<Factor> factors);

 private:
  double rate(double base_lr, std::int64_t epoch, int group) const override;
  std::vector<Factor> factors_;
};

/// Whether a metric should fall (a loss) or rise (BLEU).
enum class PlateauMode : std::uint8_t { min, max };
/// Whether a change counts from a fraction of the best (rel) or from an amount (abs).
enum class ThresholdMode : std::uint8_t { rel, abs };

/// Options of ReduceLROnPlateau, with PyTorch's names.
struct ReduceLROnPlateauOptions {
  PlateauMode mode = PlateauMode::min;                ///< what is better
  double factor = 0.1;                                ///< of a reduction
  std::int64_t patience = 10;                         ///< steps without improvement before a reduction
  double threshold = 1e-4;                            ///< least improvement that counts
  ThresholdMode threshold_mode = ThresholdMode::rel;  ///< relative to the best, or absolute
  std::int64_t cooldown = 0;  ///< steps after a reduction before the next is considered
  double min_lr = 0;          ///< the lowest learning rate
  double eps = 1e-8;          ///< added to the divisor
};

/// Multiplies the rates by `factor` when a metric has not improved for more than `patience` epochs.
///
/// Better means, for min and rel, metric < best · (1 - threshold); for abs, metric < best - threshold; for
/// max the other way round. NaN is never better. After a reduction `cooldown` epochs do not count. Rates stay
/// at or above min_lr, and a change of at most eps is not made. It starts from the rates it finds, so
/// set_lr() lasts. Throws unless 0 <= factor < 1 and patience, cooldown, min_lr, eps are at least 0.
class ReduceLROnPlateau final {
 public:
  // --- of an optimiser that lives longer; throws "Name: …" for an option out of its range
  explicit ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions options = {});
  ReduceLROnPlateau(const ReduceLROnPlateau&) = delete;
  ReduceLROnPlateau& operator=(const ReduceLROnPlateau&) = delete;

  /// Takes the metric of an epoch and lowers the rates if it is time.
  void step(double metric);
  std::int64_t last_epoch() const noexcept { return epoch_; }
  double best() const noexcept { return best_; }
  std::int64_t num_bad_epochs() const noexcept { return bad_epochs_; }

  /// "best", "num_bad_epochs", "cooldown_counter" and "last_epoch". The rates belong to the optimiser's
  /// state.
  NamedTensors state() const;
  void load_state(const NamedTensors& state);
  /// Throws if load_state would.
  void check_state(const NamedTensors& state) const;

 private:
  std::vector<Tensor> matched_state(const NamedTensors& state) const;
  bool is_better(double metric) const noexcept;

  Optimizer& optimizer_;
  ReduceLROnPlateauOptions options_;
  double best_;
  std::int64_t bad_epochs_ = 0;
  std::int64_t cooldown_counter_ = 0;
  std::int64_t epoch_ = 0;
};

}  // namespace rill::optim

#pragma GCC visibility pop
