#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <parity/expression.h>
#include <parity/optimisers.h>
#include <parity/replay.h>
#include <rill/optim/schedule.h>
#include <rill/optim/sgd.h>

namespace rill::parity {
namespace {

using optim::Optimizer;

std::vector<std::int64_t> integers(Call& c, std::string_view name) {
  const nlohmann::json& list = c.json(name);
  check(list.is_array(), "{}: {} is not a list", name, list.dump());
  return list.get<std::vector<std::int64_t>>();
}

/// The factor of an epoch as the text of `lambda` gives it for k, with the other arguments as its constants.
optim::LambdaLR::Factor factor(Call& c, const nlohmann::json& args) {
  const Expression expression(c.text("lambda"));
  Variables constants;
  for (const auto& [name, value] : args.items()) {
    if (value.is_number()) constants[name] = {c.number(name)};
  }
  return [expression, constants](std::int64_t epoch) {
    Variables variables = constants;
    variables["k"] = {static_cast<double>(epoch)};
    return expression.number(variables);
  };
}

std::unique_ptr<optim::LRScheduler> by_epoch(const std::string& name, Call& c, const nlohmann::json& args,
                                             Optimizer& optimiser) {
  using namespace optim;
  if (name == "StepLR") {
    return std::make_unique<StepLR>(
        optimiser, StepLROptions{.step_size = c.integer("step_size"), .gamma = c.number("gamma", 0.1)});
  }
  if (name == "MultiStepLR") {
    return std::make_unique<MultiStepLR>(
        optimiser,
        MultiStepLROptions{.milestones = integers(c, "milestones"), .gamma = c.number("gamma", 0.1)});
  }
  if (name == "ExponentialLR") {
    return std::make_unique<ExponentialLR>(optimiser, ExponentialLROptions{.gamma = c.number("gamma")});
  }
  if (name == "CosineAnnealingLR") {
    return std::make_unique<CosineAnnealingLR>(
        optimiser, CosineAnnealingLROptions{.T_max = c.integer("T_max"), .eta_min = c.number("eta_min", 0)});
  }
  if (name == "LinearLR") {
    const LinearLROptions d;
    return std::make_unique<LinearLR>(
        optimiser, LinearLROptions{.start_factor = c.number("start_factor", d.start_factor),
                                   .end_factor = c.number("end_factor", d.end_factor),
                                   .total_iters = c.integer("total_iters", d.total_iters)});
  }
  if (name == "LambdaLR") return std::make_unique<LambdaLR>(optimiser, factor(c, args));
  throw Unsupported(fmt::format("rill has no schedule '{}'", name));
}

optim::ReduceLROnPlateauOptions plateau_options(Call& c) {
  optim::ReduceLROnPlateauOptions o;
  if (c.has("mode")) {
    const std::string mode = c.text("mode");
    check(mode == "min" || mode == "max", "mode: '{}' is neither min nor max", mode);
    o.mode = mode == "min" ? optim::PlateauMode::min : optim::PlateauMode::max;
  }
  if (c.has("threshold_mode")) {
    const std::string mode = c.text("threshold_mode");
    check(mode == "rel" || mode == "abs", "threshold_mode: '{}' is neither rel nor abs", mode);
    o.threshold_mode = mode == "rel" ? optim::ThresholdMode::rel : optim::ThresholdMode::abs;
  }
  o.factor = c.number("factor", o.factor);
  o.patience = c.integer("patience", o.patience);
  o.threshold = c.number("threshold", o.threshold);
  o.cooldown = c.integer("cooldown", o.cooldown);
  o.min_lr = c.number("min_lr", o.min_lr);
  o.eps = c.number("eps", o.eps);
  return o;
}

}  // namespace

Schedule make_schedule(const std::string& name, const nlohmann::json& args, Optimizer& optimiser) {
  Call c(args);
  Schedule schedule;
  if (name == "ReduceLROnPlateau") {
    const auto plateau = std::make_shared<optim::ReduceLROnPlateau>(optimiser, plateau_options(c));
    schedule = [plateau](double metric) { plateau->step(metric); };
  } else {
    const std::shared_ptr<optim::LRScheduler> scheduler = by_epoch(name, c, args, optimiser);
    schedule = [scheduler](double) { scheduler->step(); };
  }
  c.check_all_used();
  return schedule;
}

Results replay_schedule(Replay& r) {
  nlohmann::json args = r.given().args;
  check(args.contains("base_lr"), "argument 'base_lr' is missing");
  const double base = to_number(args["base_lr"], "base_lr");
  args.erase("base_lr");
  optim::SGD optimiser(NamedTensors{{"w", zeros({1}).set_requires_grad()}}, {.lr = base});
  const Schedule step = make_schedule(r.given().op, args, optimiser);

  std::vector<double> rates;
  if (r.given().has("in", "metrics")) {  // the rate after each metric
    for (double metric : r.stored("in", "metrics").to_vector<double>()) {
      step(metric);
      rates.push_back(optimiser.lr());
    }
  } else {  // the rate in force during each epoch
    const std::int64_t epochs = r.stored("out", "lr").numel();
    for (std::int64_t k = 0; k < epochs; ++k) {
      rates.push_back(optimiser.lr());
      step(0);
    }
  }
  return {{"out.lr", tensor(rates, {static_cast<std::int64_t>(rates.size())})}};
}

}  // namespace rill::parity
