#include <rill/optim/rmsprop.h>

#include <utility>

#include <rill/optim/kernels/update.h>

namespace rill::optim {

RMSprop::RMSprop(Parameters params, Options options)
    : RMSprop(std::vector<Group>{{std::move(params), options}}) {}

RMSprop::RMSprop(std::vector<Group> groups) : Optimizer("RMSprop") {
  for (const Group& group : groups) {
    const Options& o = group.options;
    check_option(o.alpha >= 0 && o.alpha <= 1, "alpha", o.alpha, "in 0..1");
    check_not_negative("eps", o.eps);
    check_not_negative("weight_decay", o.weight_decay);
    check_not_negative("momentum", o.momentum);
    add_group(group.params, o.lr,
              {.names = {"square_avg", o.centered ? "grad_avg" : nullptr,
                         o.momentum > 0 ? "momentum_buffer" : nullptr}});
    options_.push_back(o);
  }
  finish_groups();
}

Optimizer::Update RMSprop::update(const Parameter& p, double scale) const {
  const Options& o = options_[static_cast<std::size_t>(p.group)];
  const kernels::RmspropCoefficients c{.scale = scale,
                                       .decay = o.weight_decay,
                                       .lr = lr(p.group),
                                       .alpha = o.alpha,
                                       .eps = o.eps,
                                       .momentum = o.momentum};
  return [c](const auto& arrays) { kernels::rmsprop(c, arrays); };
}

}  // namespace rill::optim
