#include <rill/optim/schedule.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include <rill/core/error.h>
#include <rill/core/io/checkpoint.h>

namespace rill::optim {
namespace {

Tensor count(std::int64_t value) { return tensor({value}, Shape{}); }

void check_finite(const char* name, const char* option, double value) {
  check(std::isfinite(value), "{}: {} is {}; it must be finite", name, option, value);
}

void check_at_least(const char* name, const char* option, std::int64_t value, std::int64_t least) {
  check(value >= least, "{}: {} is {}; it must be at least {}", name, option, value, least);
}

}  // namespace

LRScheduler::LRScheduler(std::string name, Optimizer& optimizer)
    : name_(std::move(name)), optimizer_(optimizer) {
  for (int group = 0; group < optimizer.groups(); ++group) base_lrs_.push_back(optimizer.lr(group));
}

void LRScheduler::start() { go_to(0, base_lrs_); }

void LRScheduler::step() { go_to(epoch_ + 1, base_lrs_); }

std::vector<double> LRScheduler::rates_of(std::int64_t epoch, const std::vector<double>& base_lrs) const {
  std::vector<double> rates;
  for (std::size_t group = 0; group < base_lrs.size(); ++group) {
    rates.push_back(rate(base_lrs[group], epoch, static_cast<int>(group)));
    check(std::isfinite(rates.back()) && rates.back() >= 0,
          "{}: the rate of epoch {} is {}; it must be finite and at least 0", name_, epoch, rates.back());
  }
  return rates;
}

void LRScheduler::go_to(std::int64_t epoch, std::vector<double> base_lrs) {
  const std::vector<double> rates = rates_of(epoch, base_lrs);
  for (std::size_t group = 0; group < rates.size(); ++group) {
    optimizer_.set_lr(rates[group], static_cast<int>(group));
  }
  epoch_ = epoch;
  base_lrs_ = std::move(base_lrs);
}

NamedTensors LRScheduler::state() const {
  return {{"last_epoch", count(epoch_)}, {"base_lrs", tensor(base_lrs_, {optimizer_.groups()})}};
}

void LRScheduler::check_state(const NamedTensors& state) const {
  const std::vector<Tensor> found = rill::detail::match_state(name_, this->state(), state);
  const auto epoch = found[0].item<std::int64_t>();
  check(epoch >= 0, "{}: 'last_epoch' of the state is {}; it must be at least 0", name_, epoch);
  rates_of(epoch, found[1].to_vector());
}

void LRScheduler::load_state(const NamedTensors& state) {
  check_state(state);
  const std::vector<Tensor> found = rill::detail::match_state(name_, this->state(), state);
  go_to(found[0].item<std::int64_t>(), found[1].to_vector());
}

StepLR::StepLR(Optimizer& optimizer, StepLROptions options)
    : LRScheduler("StepLR", optimizer), options_(options) {
  check_at_least("StepLR", "step_size", options.step_size, 1);
  check_finite("StepLR", "gamma", options.gamma);
  start();
}

double StepLR::rate(double base_lr, std::int64_t epoch, int) const {
  return base_lr * std::pow(options_.gamma, static_cast<double>(epoch / options_.step_size));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, MultiStepLROptions options)
    : LRScheduler("MultiStepLR", optimizer), options_(std::move(options)) {
  check_finite("MultiStepLR", "gamma", options_.gamma);
  start();
}

double MultiStepLR::rate(double base_lr, std::int64_t epoch, int) const {
  const auto passed = std::count_if(options_.milestones.begin(), options_.milestones.end(),
                                    [epoch](std::int64_t milestone) { return milestone <= epoch; });
  return base_lr * std::pow(options_.gamma, static_cast<double>(passed));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, ExponentialLROptions options)
    : LRScheduler("ExponentialLR", optimizer), options_(options) {
  check_finite("ExponentialLR", "gamma", options.gamma);
  start();
}

double ExponentialLR::rate(double base_lr, std::int64_t epoch, int) const {
  return base_lr * std::pow(options_.gamma, static_cast<double>(epoch));
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, CosineAnnealingLROptions options)
    : LRScheduler("CosineAnnealingLR", optimizer), options_(options) {
  check_at_least("CosineAnnealingLR", "T_max", options.T_max, 1);
  check_finite("CosineAnnealingLR", "eta_min", options.eta_min);
  start();
}

double CosineAnnealingLR::rate(double base_lr, std::int64_t epoch, int) const {
  const double angle = std::numbers::pi * static_cast<double>(epoch) / static_cast<double>(options_.T_max);
  return options_.eta_min + (base_lr - options_.eta_min) * (1 + std::cos(angle)) / 2;
}

LinearLR::LinearLR(Optimizer& optimizer, LinearLROptions options)
    : LRScheduler("LinearLR", optimizer), options_(options) {
  check(options.start_factor > 0 && options.start_factor <= 1,
        "LinearLR: start_factor is {}; it must be above 0 and at most 1", options.start_factor);
  check(options.end_factor >= 0 && options.end_factor <= 1, "LinearLR: end_factor is {}; it must be in 0..1",
        options.end_factor);
  check_at_least("LinearLR", "total_iters", options.total_iters, 1);
  start();
}

double LinearLR::rate(double base_lr, std::int64_t epoch, int) const {
  const double done =
      static_cast<double>(std::min(epoch, options_.total_iters)) / static_cast<double>(options_.total_iters);
  return base_lr * (options_.start_factor + (options_.end_factor - options_.start_factor) * done);
}

LambdaLR::LambdaLR(Optimizer& optimizer, Factor factor)
    : LambdaLR(optimizer, std::vector<Factor>(static_cast<std::size_t>(optimizer.groups()), factor)) {}

LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Factor> factors)
    : LRScheduler("LambdaLR", optimizer), factors_(std::move(factors)) {
  check(factors_.size() == static_cast<std::size_t>(optimizer.groups()),
        "LambdaLR: {} functions for {} groups; give one, or one for each", factors_.size(),
        optimizer.groups());
  for (const Factor& f : factors_) check(static_cast<bool>(f), "LambdaLR: a function is empty");
  start();
}

double LambdaLR::rate(double base_lr, std::int64_t epoch, int group) const {
  return base_lr * factors_[static_cast<std::size_t>(group)](epoch);
}

// --- plateau

namespace {

double worst(PlateauMode mode) noexcept {
  const double infinity = std::numeric_limits<double>::infinity();
  return mode == PlateauMode::min ? infinity : -infinity;
}

}  // namespace

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions options)
    : optimizer_(optimizer), options_(options), best_(worst(options.mode)) {
  const char* name = "ReduceLROnPlateau";
  check(options.factor >= 0 && options.factor < 1, "{}: factor is {}; it must be at least 0 and below 1",
        name, options.factor);
  check_at_least(name, "patience", options.patience, 0);
  check_at_least(name, "cooldown", options.cooldown, 0);
  const bool relative = options.threshold_mode == ThresholdMode::rel;
  check(
      options.threshold >= 0 && options.threshold < (relative ? 1 : std::numeric_limits<double>::infinity()),
      "{}: threshold is {}; it must be at least 0 and {}", name, options.threshold,
      relative ? "below 1, a fraction of the best" : "finite");
  check(options.min_lr >= 0, "{}: min_lr is {}; it must be at least 0", name, options.min_lr);
  check(options.eps >= 0, "{}: eps is {}; it must be at least 0", name, options.eps);
}

bool ReduceLROnPlateau::is_better(double metric) const noexcept {
  const double t = options_.threshold;
  const bool relative = options_.threshold_mode == ThresholdMode::rel;
  if (options_.mode == PlateauMode::min) return metric < (relative ? best_ * (1 - t) : best_ - t);
  return metric > (relative ? best_ * (1 + t) : best_ + t);
}

void ReduceLROnPlateau::step(double metric) {
  ++epoch_;
  if (is_better(metric)) {
    best_ = metric;
    bad_epochs_ = 0;
  } else {
    ++bad_epochs_;
  }
  if (cooldown_counter_ > 0) {
    --cooldown_counter_;
    bad_epochs_ = 0;
  }
  if (bad_epochs_ <= options_.patience) return;
  for (int group = 0; group < optimizer_.groups(); ++group) {
    const double before = optimizer_.lr(group);
    const double after = std::max(before * options_.factor, options_.min_lr);
    if (before - after > options_.eps) optimizer_.set_lr(after, group);
  }
  cooldown_counter_ = options_.cooldown;
  bad_epochs_ = 0;
}

NamedTensors ReduceLROnPlateau::state() const {
  return {{"best", scalar(best_, float64)},
          {"num_bad_epochs", count(bad_epochs_)},
          {"cooldown_counter", count(cooldown_counter_)},
          {"last_epoch", count(epoch_)}};
}

void ReduceLROnPlateau::check_state(const NamedTensors& state) const { matched_state(state); }

std::vector<Tensor> ReduceLROnPlateau::matched_state(const NamedTensors& state) const {
  const NamedTensors wanted = this->state();
  std::vector<Tensor> found = rill::detail::match_state("ReduceLROnPlateau", wanted, state);
  for (std::size_t i = 1; i < found.size(); ++i) {
    const auto value = found[i].item<std::int64_t>();
    check(value >= 0, "ReduceLROnPlateau: '{}' of the state is {}; it must be at least 0", wanted[i].first,
          value);
  }
  return found;
}

void ReduceLROnPlateau::load_state(const NamedTensors& state) {
  const std::vector<Tensor> found = matched_state(state);
  best_ = found[0].item();
  bad_epochs_ = found[1].item<std::int64_t>();
  cooldown_counter_ = found[2].item<std::int64_t>();
  epoch_ = found[3].item<std::int64_t>();
}

}  // namespace rill::optim
