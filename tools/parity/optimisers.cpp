#include <parity/optimisers.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include <parity/replay.h>
#include <rill/core/ops.h>
#include <rill/optim/adadelta.h>
#include <rill/optim/adagrad.h>
#include <rill/optim/adam.h>
#include <rill/optim/rmsprop.h>
#include <rill/optim/sgd.h>

namespace rill::parity {
namespace {

using optim::Optimizer;

void set_number(Call& c, std::string_view name, double& option) { option = c.number(name, option); }
void set_flag(Call& c, std::string_view name, bool& option) { option = c.flag(name, option); }

// Options of each optimiser from the arguments; what is absent keeps its default.

void read(Call& c, optim::SGDOptions& o) {
  set_number(c, "momentum", o.momentum);
  set_number(c, "dampening", o.dampening);
  set_flag(c, "nesterov", o.nesterov);
}

template <class AdamLike>
requires requires(AdamLike o) { o.amsgrad; }
void read(Call& c, AdamLike& o) {
  if (c.has("betas")) {
    const nlohmann::json& betas = c.json("betas");
    check(betas.is_array() && betas.size() == 2, "betas: {} are not two numbers", betas.dump());
    o.betas = {to_number(betas[0], "betas"), to_number(betas[1], "betas")};
  }
  set_number(c, "eps", o.eps);
  set_flag(c, "amsgrad", o.amsgrad);
}

void read(Call& c, optim::RMSpropOptions& o) {
  set_number(c, "alpha", o.alpha);
  set_number(c, "eps", o.eps);
  set_number(c, "momentum", o.momentum);
  set_flag(c, "centered", o.centered);
}

void read(Call& c, optim::AdagradOptions& o) {
  set_number(c, "lr_decay", o.lr_decay);
  set_number(c, "initial_accumulator_value", o.initial_accumulator_value);
  set_number(c, "eps", o.eps);
}

void read(Call& c, optim::AdadeltaOptions& o) {
  set_number(c, "rho", o.rho);
  set_number(c, "eps", o.eps);
}

template <class Options>
Options options_of(const nlohmann::json& args) {
  Call c(args);
  Options o;
  set_number(c, "lr", o.lr);
  set_number(c, "weight_decay", o.weight_decay);
  read(c, o);
  c.check_all_used();
  return o;
}

/// The options of a group: its own, and for what it does not say those of the optimiser.
nlohmann::json group_args(const nlohmann::json& common, const nlohmann::json& group) {
  nlohmann::json args = common;
  args.erase("groups");
  args.update(group);
  args.erase("params");
  return args;
}

NamedTensors chosen(const optim::Parameters& parameters, const nlohmann::json& names) {
  NamedTensors list;
  for (const auto& name : names) {
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const auto& p) { return p.first == name.get<std::string>(); });
    check(found != parameters.end(), "groups: there is no parameter {}", name.dump());
    list.push_back(*found);
  }
  return list;
}

template <class O>
std::unique_ptr<Optimizer> make(const nlohmann::json& args, const optim::Parameters& parameters) {
  using Options = typename O::Options;
  if (!args.contains("groups")) return std::make_unique<O>(parameters, options_of<Options>(args));
  std::vector<typename O::Group> groups;
  for (const auto& group : args["groups"]) {
    groups.push_back({chosen(parameters, group.at("params")), options_of<Options>(group_args(args, group))});
  }
  return std::make_unique<O>(std::move(groups));
}

/// 10 · mean((tanh(x·w + b) - y)²): what the cases of this kind minimise.
Tensor loss_of(const Tensor& x, const Tensor& y, const Tensor& w, const Tensor& b) {
  return mul(mean(square(sub(tanh(add(matmul(x, w), b)), y))), 10);
}

/// One row a step of the loss and, for each parameter that learns, its gradient before and its value after
/// the step.
class Trajectory {
 public:
  void add(const std::string& name, const Tensor& row) { rows_[name].push_back(row.detach().clone()); }
  Results results() const {
    Results all;
    for (const auto& [name, rows] : rows_) all[name] = stack(rows);
    return all;
  }

 private:
  std::map<std::string, std::vector<Tensor>> rows_;
};

/// A parameter without a gradient must stay what it was.
void check_unmoved(const std::string& name, const Tensor& parameter, const Tensor& before) {
  check(!parameter.grad().defined(), "param.{} has a gradient, but no loss depends on it", name);
  if (const auto moved = difference("param." + name, parameter, before, {})) {
    fail("{}; a parameter without a gradient must not move", *moved);
  }
}

}  // namespace

std::pair<std::string, nlohmann::json> named_options(const nlohmann::json& entry) {
  check(entry.is_object() && entry.size() == 1, "{} is not of the form {{\"Name\": {{options}}}}",
        entry.dump());
  return {entry.begin().key(), entry.begin().value()};
}

std::unique_ptr<Optimizer> make_optimiser(const std::string& name, const nlohmann::json& args,
                                          const optim::Parameters& parameters) {
  if (name == "SGD") return make<optim::SGD>(args, parameters);
  if (name == "Adam") return make<optim::Adam>(args, parameters);
  if (name == "AdamW") return make<optim::AdamW>(args, parameters);
  if (name == "RMSprop") return make<optim::RMSprop>(args, parameters);
  if (name == "Adagrad") return make<optim::Adagrad>(args, parameters);
  if (name == "Adadelta") return make<optim::Adadelta>(args, parameters);
  throw Unsupported(fmt::format("rill has no optimiser '{}'", name));
}

Results replay_optimiser(Replay& r) {
  Call& c = r.call();
  const Tensor x = c.tensor("x"), y = c.tensor("y");
  NamedTensors parameters;
  std::map<std::string, Tensor> before;
  for (const std::string& name : r.given().names("param")) {
    before[name] = r.stored("param", name);
    parameters.emplace_back(name, before[name].clone().set_requires_grad());
  }
  const auto parameter = [&](const char* name) {
    return chosen(parameters, nlohmann::json::array({name}))[0].second;
  };
  const Tensor w = parameter("w"), b = parameter("b");

  nlohmann::json args = r.given().args;
  const std::int64_t steps = c.integer("steps");
  args.erase("steps");
  args.erase("scheduler");
  const auto optimiser = make_optimiser(r.given().op, args, parameters);
  Schedule schedule = [](double) {};
  if (c.has("scheduler")) {
    const auto [name, options] = named_options(c.json("scheduler"));
    schedule = make_schedule(name, options, *optimiser);
  }
  Trajectory trajectory;
  for (std::int64_t step = 0; step < steps; ++step) {
    optimiser->zero_grad();
    const Tensor loss = loss_of(x, y, w, b);
    loss.backward();
    trajectory.add("out.loss", loss);
    for (const std::string& name : r.given().names("grad")) {
      trajectory.add("grad." + name, gradient_or_zeros(parameter(name.c_str())));
    }
    optimiser->step();
    schedule(loss.item());
    for (const auto& [name, p] : parameters) trajectory.add("out." + name, p);
  }
  for (const auto& [name, p] : parameters) {
    if (name != "w" && name != "b") check_unmoved(name, p, before[name]);
  }
  return trajectory.results();
}

}  // namespace rill::parity
