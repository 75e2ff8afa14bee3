/// Learning rate schedules.
///
///   optim::CosineAnnealingLR schedule(adam, {.T_max = epochs});
///   for (…) {
///     train_one_epoch();
///     schedule.step();
///   }
///
/// The base rate of each group is its learning rate when the schedule is constructed. The constructor sets
/// the rate of epoch 0, and each step() that of the next epoch; an "epoch" is whatever step() is called
/// after, an epoch or a batch. Rates are a function of base rate and epoch alone, so the effect of set_lr()
/// ends with the next step. Names and values are PyTorch's, except that two schedules on one optimiser do not
/// multiply: the later one sets the rate. For warm-up followed by decay use one LambdaLR. The optimiser must
/// outlive the schedule.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <rill/optim/optimizer.h>

#pragma GCC visibility push(default)

namespace rill::optim {

/// The base of all schedules whose rate is a function of the epoch. Not copyable, since it refers to its
/// optimiser. Thread safety: needs exclusive access.
class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  /// Advances to the next epoch and sets its rates.
  void step();
  /// The number of calls of step().
  std::int64_t last_epoch() const noexcept { return epoch_; }
  /// The base rate of each group.
  const std::vector<double>& base_lrs() const noexcept { return base_lrs_; }

  /// "last_epoch" and "base_lrs"; options are not included.
  NamedTensors state() const;
  /// Restores the result of state() and sets the rates of that epoch. Throws, and changes nothing, unless it
  /// matches.
  void load_state(const NamedTensors& state);
  /// Throws if load_state would.
  void check_state(const NamedTensors& state) const;

 protected:
  // --- throws "Name: …" for an option out of range; `optimizer` must outlive the schedule
  LRScheduler(std::string name, Optimizer& optimizer);
  /// Called at the end of constructors.
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
  std::int64_t step_size = 1;  ///< epochs between reductions
  double gamma = 0.1;          ///< factor of a reduction
};
/// base · gamma^⌊epoch / step_size⌋. Throws unless step_size >= 1.
class StepLR final : public LRScheduler {
 public:
  // --- throws "Name: …" for an option out of range; `optimizer` must outlive the schedule
  StepLR(Optimizer& optimizer, StepLROptions options);

 private:
  double rate(double base_lr, std::int64_t epoch, int group) const override;
  StepLROptions options_;
};

/// Options of MultiStepLR, with PyTorch's names.
struct MultiStepLROptions {
  std::vector<std::int64_t> milestones = {};  ///< epochs at which to reduce
  double gamma = 0.1;                         ///< factor of a reduction
};
/// base · gamma^(number of milestones at or before epoch). Milestones may be in any order and may repeat.
class MultiStepLR final : public LRScheduler {
 public:
  // --- throws "Name: …" for an option out of range; `optimizer` must outlive the schedule
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
  // --- throws "Name: …" for an option out of range; `optimizer` must outlive the schedule
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
/// eta_min + (base - eta_min) · (1 + cos(π epoch / T_max)) / 2, which rises again after T_max. Throws unless
/// T_max >= 1. (Loshchilov and Hutter 2017.)
class CosineAnnealingLR final : public LRScheduler {
 public:
  // --- throws "Name: …" for an option out of range; `optimizer` must outlive the schedule
  CosineAnnealingLR(Optimizer& optimizer, CosineAnnealingLROptions options);

 private:
  double rate(double base_lr, std::int64_t epoch, int group) const override;
  CosineAnnealingLROptions options_;
};

/// Options of LinearLR, with PyTorch's names.
struct LinearLROptions {
  double start_factor = 1.0 / 3;  ///< at epoch 0
  double end_factor = 1;          ///< from epoch total_iters on
  std::int64_t total_iters = 5;   ///< epochs between them
};
/// base · a factor that changes linearly from start_factor to end_factor over total_iters epochs and then
/// stays constant: a warm-up. Throws unless 0 < start_factor <= 1, 0 <= end_factor <= 1 and total_iters >= 1.
class LinearLR final : public LRScheduler {
 public:
  // --- throws "Name: …" for an option out of range; `optimizer` must outlive the schedule
  LinearLR(Optimizer& optimizer, LinearLROptions options = {});

 private:
  double rate(double base_lr, std::int64_t epoch, int group) const override;
  LinearLROptions options_;
};

/// base · factor(epoch), with one function for all groups or one per group.
class LambdaLR final : public LRScheduler {
 public:
  using Factor = std::function<double(std::int64_t epoch)>;  ///< factor of the rate at an epoch

  // --- throws "Name: …" for an option out of range; `optimizer` must outlive the schedule
  LambdaLR(Optimizer& optimizer, Factor factor);
  // --- throws "Name: …" for an option out of range; `optimizer` must outlive the schedule
  LambdaLR(Optimizer& optimizer, std::vector<Factor> factors);

 private:
  double rate(double base_lr, std::int64_t epoch, int group) const override;
  std::vector<Factor> factors_;
};

/// Whether a metric should decrease (a loss) or increase (BLEU).
enum class PlateauMode : std::uint8_t { min, max };
/// Whether the threshold is relative to the best value or absolute.
enum class ThresholdMode : std::uint8_t { rel, abs };

/// Options of ReduceLROnPlateau, with PyTorch's names.
struct ReduceLROnPlateauOptions {
  PlateauMode mode = PlateauMode::min;                ///< direction of improvement
  double factor = 0.1;                                ///< of a reduction
  std::int64_t patience = 10;                         ///< epochs without improvement before a reduction
  double threshold = 1e-4;                            ///< minimum improvement that counts
  ThresholdMode threshold_mode = ThresholdMode::rel;  ///< relative to the best, or absolute
  std::int64_t cooldown = 0;                          ///< epochs to wait after a reduction
  double min_lr = 0;                                  ///< the lowest learning rate
  double eps = 1e-8;                                  ///< changes of the rate up to this are skipped
};

/// Multiplies the rates by `factor` after a metric has not improved for more than `patience` epochs.
///
/// An improvement means, for min and rel, metric < best · (1 - threshold); for abs, metric < best -
/// threshold; for max the converse. NaN is never an improvement. After a reduction `cooldown` epochs do not
/// count. Rates stay at or above min_lr, and a change of at most eps is skipped. Reductions start from the
/// current rates, so the effect of set_lr() lasts. Throws unless 0 <= factor < 1 and patience, cooldown,
/// min_lr, eps are at least 0.
class ReduceLROnPlateau final {
 public:
  // --- throws "Name: …" for an option out of range; `optimizer` must outlive the schedule
  explicit ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions options = {});
  ReduceLROnPlateau(const ReduceLROnPlateau&) = delete;
  ReduceLROnPlateau& operator=(const ReduceLROnPlateau&) = delete;

  /// Takes the metric of an epoch and reduces the rates if necessary.
  void step(double metric);
  std::int64_t last_epoch() const noexcept { return epoch_; }
  double best() const noexcept { return best_; }
  std::int64_t num_bad_epochs() const noexcept { return bad_epochs_; }

  /// "best", "num_bad_epochs", "cooldown_counter" and "last_epoch". The rates are part of the optimiser's
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
