#include <rill/optim/rmsprop.h>

#include <utility>

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

void RMSprop::update(double scale) {
  const auto coefficients = [&](const Parameter& p) {
    const Options& o = options_[static_cast<std::size_t>(p.group)];
    return kernels::RmspropCoefficients{.scale = scale,
                                        .decay = o.weight_decay,
                                        .lr = lr(p.group),
                                        .alpha = o.alpha,
                                        .eps = o.eps,
                                        .momentum = o.momentum};
  };
  apply(coefficients, []<class T>(const auto& c, const kernels::Arrays<T>& a) { kernels::rmsprop(c, a); });
}

}  // namespace rill::optim
