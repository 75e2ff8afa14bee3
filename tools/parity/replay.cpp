#include <parity/replay.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <parity/expression.h>
#include <parity/ops.h>
#include <rill/core/autograd.h>
#include <rill/core/ops.h>

namespace rill::parity {
namespace {

/// Sum, 2-norm and first values of a gradient too large to be stored.
Tensor summary(const Tensor& gradient, std::int64_t size) {
  const std::vector<double> all = gradient.to_vector<double>();
  check(size >= 2 && static_cast<std::size_t>(size - 2) <= all.size(),
        "summary: {} numbers of a gradient of {}", size, all.size());
  std::vector<double> numbers(2, 0.0);
  for (double v : all) {
    numbers[0] += v;
    numbers[1] += v * v;
  }
  numbers[1] = std::sqrt(numbers[1]);
  numbers.insert(numbers.end(), all.begin(), all.begin() + (size - 2));
  return tensor(numbers, {size});
}

}  // namespace

Tensor gradient_or_zeros(const nn::ParameterView& leaf) {
  const Tensor g = leaf.grad();
  return g.defined() ? g : zeros(leaf.shape(), leaf.dtype());
}

Tensor Replay::stored(std::string_view role, std::string_view name) const {
  const Tensor& t = set_.tensor(case_, role, name);
  return is_floating(t.dtype()) ? t.to(dtype_) : t;
}

Call& Replay::call() {
  if (called_) return call_;
  called_ = true;
  call_ = Call(case_.args);
  for (const std::string& name : case_.names("in")) {
    Tensor t = stored("in", name).clone();
    if (case_.has("grad", "in." + name)) t.set_requires_grad();
    inputs_[name] = t;
    call_.set(name, t);
  }
  return call_;
}

NamedTensors Replay::formula_parameters(const nn::Module& module) {
  const nlohmann::json& formula = call().json("param_formula");
  check(formula.is_object() && formula.contains("value") && formula.contains("order"),
        "param_formula: {} has no value and order", formula.dump());
  const Expression value(formula["value"].get<std::string>());
  Variables variables;
  for (const auto& [name, constant] : formula.items()) {
    if (constant.is_number()) variables[name] = {constant.get<double>()};
  }
  NamedTensors state;
  for (const auto& item : formula["order"]) {
    const std::string name = item.get<std::string>();
    const Tensor like = module.parameter(name);
    variables["k"] = {static_cast<double>(state.size())};
    std::vector<double> numbers(static_cast<std::size_t>(like.numel()));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      variables["i"] = {static_cast<double>(i)};
      numbers[i] = value.number(variables);
    }
    state.emplace_back(name, tensor(numbers, like.shape()));
  }
  return state;
}

void Replay::load(nn::Module& module) {
  module.to(dtype_);
  NamedTensors state;
  if (call().has("param_formula")) {
    state = formula_parameters(module);
  } else {
    for (const std::string& name : case_.names("param")) state.emplace_back(name, stored("param", name));
  }
  module.load_state_dict(state);
  parameters_ = module.named_parameters();
}

Tensor Replay::gradient_of(const std::string& name) const {
  if (name.starts_with("in.")) {
    const auto input = inputs_.find(name.substr(3));
    check(input != inputs_.end(), "'{}' is not an input", name);
    return gradient_or_zeros(input->second);
  }
  for (const auto& [parameter, view] : parameters_) {
    if (name == parameter || name == "param." + parameter) return gradient_or_zeros(view);
  }
  fail("there is no parameter '{}'", name);
}

Results Replay::finish(const NamedTensors& outputs) {
  Results results;
  std::vector<Tensor> roots, gradients;
  for (const auto& [name, t] : outputs) {
    results["out." + name] = t.detach();
    if (case_.loss.empty() ? !case_.has("gout", name) : case_.loss != name) continue;
    roots.push_back(t);
    gradients.push_back(case_.loss.empty() ? stored("gout", name) : ones(t.shape(), t.dtype()));
  }
  const auto& wanted = case_.names("grad");
  if (wanted.empty() && case_.names("summary").empty()) return results;
  check(!roots.empty(), "gradients are wanted, but no output has a gout");
  backward(std::span<const Tensor>(roots), std::span<const Tensor>(gradients));
  for (const std::string& name : wanted) results["grad." + name] = gradient_of(name);
  for (const std::string& name : case_.names("summary")) {
    results["summary." + name] = summary(gradient_of(name), set_.tensor(case_, "summary", name).numel());
  }
  return results;
}

Results replay_op(Replay& r) {
  Call& call = r.call();
  if (call.has("expr")) {
    const Expression expression(call.text("expr"));
    Variables variables;
    for (const std::string& name : r.given().names("in")) variables[name] = {call.tensor(name)};
    const NamedTensors outputs = expression.evaluate(variables);
    call.check_all_used();
    return r.finish(outputs);
  }
  const Op* op = find_op(r.given().op);
  if (op == nullptr) throw Unsupported(fmt::format("rill has no op '{}'", r.given().op));
  const NamedTensors outputs = op->run(call);
  call.check_all_used();
  return r.finish(outputs);
}

Results replay(const ReferenceSet& set, const Case& c, DType dtype) {
  Replay r(set, c, c.kind == "schedule" ? float64 : dtype);
  if (c.kind == "op") return replay_op(r);
  if (c.kind == "module") return replay_module(r);
  if (c.kind == "optim") return replay_optimiser(r);
  if (c.kind == "util") return replay_utility(r);
  if (c.kind == "schedule") return replay_schedule(r);
  if (c.kind == "train") return replay_training(r);
  throw Unsupported(fmt::format("cases of kind '{}' are not known", c.kind));
}

}  // namespace rill::parity
