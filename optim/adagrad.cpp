#include <rill/optim/adagrad.h>

#include <utility>

#include <rill/optim/kernels/update.h>

namespace rill::optim {

Adagrad::Adagrad(Parameters params, Options options)
    : Adagrad(std::vector<Group>{{std::move(params), options}}) {}

Adagrad::Adagrad(std::vector<Group> groups) : Optimizer("Adagrad") {
  for (const Group& group : groups) {
    const Options& o = group.options;
    check_not_negative("lr_decay", o.lr_decay);
    check_not_negative("weight_decay", o.weight_decay);
    check_not_negative("initial_accumulator_value", o.initial_accumulator_value);
    check_not_negative("eps", o.eps);
    add_group(group.params, o.lr, {.names = {"sum"}, .initial = o.initial_accumulator_value});
    options_.push_back(o);
  }
  finish_groups();
}

Optimizer::Update Adagrad::update(const Parameter& p, double scale) const {
  const Options& o = options_[static_cast<std::size_t>(p.group)];
  const kernels::AdagradCoefficients c{
      .scale = scale,
      .decay = o.weight_decay,
      .lr = lr(p.group) / (1 + static_cast<double>(p.steps - 1) * o.lr_decay),
      .eps = o.eps};
  return [c](const auto& arrays) { kernels::adagrad(c, arrays); };
}

}  // namespace rill::optim
