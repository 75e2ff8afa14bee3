#include <rill/optim/optimizer.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <rill/core/io/checkpoint.h>
#include <rill/core/parallel.h>
#include <rill/optim/flat.h>
#include <rill/optim/kernels/update.h>
#include <rill/optim/norm.h>

namespace rill::optim {
namespace {

/// A pair of tensors of a list that share elements.
std::optional<std::pair<std::size_t, std::size_t>> overlap(const std::vector<Tensor>& tensors) {
  using Span = std::tuple<const Storage*, std::int64_t, std::size_t>;  // storage, first element, index
  std::vector<Span> spans;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorImpl& t = tensors[i].impl();
    if (t.numel > 0) spans.emplace_back(t.storage.get(), t.offset, i);
  }
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 1; i < spans.size(); ++i) {
    const auto& [storage, first, index] = spans[i];
    const auto& [previous_storage, previous_first, previous] = spans[i - 1];
    if (storage == previous_storage && first < previous_first + tensors[previous].numel()) {
      return std::minmax(previous, index);
    }
  }
  return std::nullopt;
}

Tensor scalar_of(std::int64_t value) { return tensor({value}, Shape{}); }

}  // namespace

void Optimizer::check_option(bool ok, const char* option, double value, const char* range) const {
  check(ok, "{}: {} is {}; it must be {}", name_, option, value, range);
}

void Optimizer::check_not_negative(const char* option, double value) const {
  check_option(std::isfinite(value) && value >= 0, option, value, "finite and at least 0");
}

void Optimizer::add_group(const Parameters& parameters, double lr, const StateSpec& spec) {
  check_not_negative("lr", lr);
  const int group = groups();
  lrs_.push_back(lr);
  specs_.push_back(spec);
  for (const auto& [given, t] : parameters) {
    const std::string label = given.empty() ? std::to_string(tensors_.size()) : given;
    check(t.defined(), "{}: parameter '{}' is undefined", name_, label);
    check(is_floating(t.dtype()), "{}: parameter '{}' is {}; only float32 and float64 can be trained", name_,
          label, rill::name(t.dtype()));
    check(t.is_contiguous(),
          "{}: parameter '{}' of shape {} has strides {}; a leaf is a dense array: train a contiguous() copy",
          name_, label, t.shape(), t.strides());
    check(t.is_leaf(), "{}: parameter '{}' is the result of '{}'; only leaves can be trained", name_, label,
          t.op_name());
    Parameter p{.name = label, .group = group, .steps = 0, .state = {}};
    for (std::size_t k = 0; k < p.state.size(); ++k) {
      if (spec.names[k] == nullptr) continue;
      p.state[k] = full(t.shape(), spec.initial, t.dtype());
    }
    tensors_.push_back(t);
    parameters_.push_back(std::move(p));
  }
}

void Optimizer::finish_groups() {
  check(!tensors_.empty(), "{}: there are no parameters", name_);
  std::set<std::string> names;
  for (Parameter& p : parameters_) {
    if (p.group > 0 && names.contains(p.name)) p.name = fmt::format("{}.{}", p.group, p.name);
    check(names.insert(p.name).second, "{}: two parameters are named '{}'", name_, p.name);
  }
  if (const auto shared = overlap(tensors_)) {
    fail("{}: parameters '{}' and '{}' share elements; list each element once", name_,
         parameters_[shared->first].name, parameters_[shared->second].name);
  }
}

void Optimizer::gather_gradients() {
  gradients_.assign(tensors_.size(), Tensor());
  bool any = false;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& t = tensors_[i];
    const Tensor g = t.grad();
    if (!g.defined()) continue;
    for (const Tensor& state : parameters_[i].state) {
      if (!state.defined()) continue;
      check(state.dtype() == t.dtype() && state.shape() == t.shape(),
            "{}: parameter '{}' is {} {} now and was {} {} when the optimiser was made; make the optimiser "
            "after to()",
            name_, parameters_[i].name, rill::name(t.dtype()), t.shape(), rill::name(state.dtype()),
            state.shape());
    }
    check(g.dtype() == t.dtype() && g.shape() == t.shape(),
          "{}: the gradient of parameter '{}' is {} {}, the parameter {} {}", name_, parameters_[i].name,
          rill::name(g.dtype()), g.shape(), rill::name(t.dtype()), t.shape());
    any = true;
    gradients_[i] = g;
  }
  check(any, "{}: no parameter has a gradient; call backward() on a loss that depends on them before a step",
        name_);
}

void Optimizer::run(const detail::Flat& flat, double scale) {
  const FlushDenormals flush;
  std::vector<Update> updates(tensors_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!gradients_[i].defined()) continue;
    ++parameters_[i].steps;
    updates[i] = update(parameters_[i], scale);
    tensors_[i].impl().storage->bump_version();
  }
  flat.for_each([&](const detail::Chunk& chunk) {
    const Tensor& gradient = gradients_[chunk.tensor];
    if (!gradient.defined()) return;
    visit_floating("step", gradient.dtype(), [&]<class T>(Type<T>) {
      kernels::Arrays<T> arrays{.n = chunk.size,
                                .param = detail::address<T>(tensors_[chunk.tensor], chunk.offset),
                                .grad = detail::address<T>(gradient, chunk.offset)};
      const auto& state = parameters_[chunk.tensor].state;
      for (std::size_t k = 0; k < state.size(); ++k) {
        if (state[k].defined()) arrays.state[k] = detail::address<T>(state[k], chunk.offset);
      }
      updates[chunk.tensor](arrays);
    });
  });
  gradients_.clear();
}

void Optimizer::step() {
  gather_gradients();
  run(detail::Flat(tensors_), 1);
}

ClippedStep Optimizer::step_clipped(double max_norm, double norm_type) {
  gather_gradients();
  const detail::Flat flat(tensors_);
  const double norm = detail::norm_of(flat, gradients_, norm_type);
  const double factor = detail::clip_factor("step_clipped", norm, max_norm);
  if (!std::isfinite(norm)) {
    ++skipped_steps_;
    gradients_.clear();
    return {.norm = norm, .applied = false};
  }
  run(flat, factor);
  return {.norm = norm, .applied = true};
}

void Optimizer::zero_grad() {
  for (Tensor& t : tensors_) t.zero_grad();
}

double Optimizer::lr(int group) const {
  check(group >= 0 && group < groups(), "{}: group {} is outside 0..{}", name_, group, groups() - 1);
  return lrs_[static_cast<std::size_t>(group)];
}

void Optimizer::set_lr(double lr, int group) {
  check(group >= 0 && group < groups(), "{}: group {} is outside 0..{}", name_, group, groups() - 1);
  check_not_negative("lr", lr);
  lrs_[static_cast<std::size_t>(group)] = lr;
}

void Optimizer::set_lr(double lr) {
  for (int group = 0; group < groups(); ++group) set_lr(lr, group);
}

NamedTensors Optimizer::state() const {
  NamedTensors all{{"lr", tensor(lrs_, {groups()})}, {"skipped_steps", scalar_of(skipped_steps_)}};
  for (const Parameter& p : parameters_) {
    all.emplace_back(p.name + ".step", scalar_of(p.steps));
    const StateSpec& spec = specs_[static_cast<std::size_t>(p.group)];
    for (std::size_t k = 0; k < p.state.size(); ++k) {
      if (p.state[k].defined()) all.emplace_back(p.name + '.' + spec.names[k], p.state[k].clone());
    }
  }
  return all;
}

std::vector<Tensor> Optimizer::matched_state(const NamedTensors& state) const {
  const NamedTensors wanted = this->state();
  std::vector<Tensor> found = rill::detail::match_state(name_, wanted, state);
  for (double lr : found[0].to_vector()) check_not_negative("lr of the state", lr);
  for (std::size_t i = 1; i < found.size(); ++i) {
    if (wanted[i].second.dtype() != int64) continue;
    const auto count = found[i].item<std::int64_t>();
    check(count >= 0, "{}: '{}' of the state is {}; it must be at least 0", name_, wanted[i].first, count);
  }
  return found;
}

void Optimizer::load_state(const NamedTensors& state) {
  const std::vector<Tensor> found = matched_state(state);
  lrs_ = found[0].to_vector();
  skipped_steps_ = found[1].item<std::int64_t>();
  std::size_t i = 2;
  for (Parameter& p : parameters_) {
    p.steps = found[i++].item<std::int64_t>();
    for (Tensor& t : p.state) {
      if (t.defined()) t.copy_(found[i++]);
    }
  }
}

}  // namespace rill::optim
