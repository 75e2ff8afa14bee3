#include <rill/optim/sgd.h>

#include <cmath>
#include <utility>

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

void SGD::update(double scale) {
  const auto coefficients = [&](const Parameter& p) {
    const Options& o = options_[static_cast<std::size_t>(p.group)];
    const bool first = p.steps == 1;
    return kernels::SgdCoefficients{.scale = scale,
                                    .decay = o.weight_decay,
                                    .lr = lr(p.group),
                                    .momentum = first ? 0 : o.momentum,
                                    .keep = first ? 1 : 1 - o.dampening,
                                    .nesterov_momentum = o.nesterov ? o.momentum : 0};
  };
  apply(coefficients, []<class T>(const auto& c, const kernels::Arrays<T>& a) { kernels::sgd(c, a); });
}

}  // namespace rill::optim
