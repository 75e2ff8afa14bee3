#include <rill/optim/adadelta.h>

#include <utility>

#include <rill/optim/kernels/update.h>

namespace rill::optim {

Adadelta::Adadelta(Parameters params, Options options)
    : Adadelta(std::vector<Group>{{std::move(params), options}}) {}

Adadelta::Adadelta(std::vector<Group> groups) : Optimizer("Adadelta") {
  for (const Group& group : groups) {
    const Options& o = group.options;
    check_option(o.rho >= 0 && o.rho <= 1, "rho", o.rho, "in 0..1");
    check_not_negative("eps", o.eps);
    check_not_negative("weight_decay", o.weight_decay);
    add_group(group.params, o.lr, {.names = {"square_avg", "acc_delta"}});
    options_.push_back(o);
  }
  finish_groups();
}

Optimizer::Update Adadelta::update(const Parameter& p, double scale) const {
  const Options& o = options_[static_cast<std::size_t>(p.group)];
  const kernels::AdadeltaCoefficients c{
      .scale = scale, .decay = o.weight_decay, .lr = lr(p.group), .rho = o.rho, .eps = o.eps};
  return [c](const auto& arrays) { kernels::adadelta(c, arrays); };
}

}  // namespace rill::optim
