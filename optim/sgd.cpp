#include <rill/optim/sgd.h>

#include <cmath>
#include <utility>

#include <rill/optim/kernels/update.h>

namespace rill::optim {

SGD::SGD(Parameters params, Options options) : SGD(std::vector<Group>{{std::move(params), options}}) {}

SGD::SGD(std::vector<Group> groups) : Optimizer("SGD") {
  for (const Group& group : groups) {
    const Options& o = group.options;
    check_not_negative("momentum", o.momentum);
    check_option(std::isfinite(o.dampening), "dampening", o.dampening, "finite");
    check_not_negative("weight_decay", o.weight_decay);
    check(!o.nesterov || (o.momentum > 0 && o.dampening == 0),
          "SGD: nesterov needs momentum above 0 and no dampening; they are {} and {}", o.momentum,
          o.dampening);
    add_group(group.params, o.lr, {.names = {o.momentum == 0 ? nullptr : "momentum_buffer"}});
    options_.push_back(o);
  }
  finish_groups();
}

Optimizer::Update SGD::update(const Parameter& p, double scale) const {
  const Options& o = options_[static_cast<std::size_t>(p.group)];
  const bool first = p.steps == 1;
  const kernels::SgdCoefficients c{.scale = scale,
                                   .decay = o.weight_decay,
                                   .lr = lr(p.group),
                                   .momentum = first ? 0 : o.momentum,
                                   .keep = first ? 1 : 1 - o.dampening,
                                   .nesterov_momentum = o.nesterov ? o.momentum : 0};
  return [c](const auto& arrays) { kernels::sgd(c, arrays); };
}

}  // namespace rill::optim
