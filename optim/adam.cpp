#include <rill/optim/adam.h>

#include <cmath>
#include <utility>

#include <rill/optim/kernels/update.h>

namespace rill::optim {

Adam::Adam(Parameters params, Options options) : Adam(std::vector<Group>{{std::move(params), options}}) {}

Adam::Adam(std::vector<Group> groups) : Adam("Adam", groups, false) {}

Adam::Adam(std::string name, const std::vector<Group>& groups, bool decoupled)
    : Optimizer(std::move(name)), decoupled_(decoupled) {
  for (const Group& group : groups) {
    const Options& o = group.options;
    for (double beta : o.betas) check_option(beta >= 0 && beta < 1, "betas", beta, "at least 0 and below 1");
    check_not_negative("eps", o.eps);
    check_not_negative("weight_decay", o.weight_decay);
    add_group(group.params, o.lr,
              {.names = {"exp_avg", "exp_avg_sq", o.amsgrad ? "max_exp_avg_sq" : nullptr}});
    options_.push_back(o);
  }
  finish_groups();
}

Optimizer::Update Adam::update(const Parameter& p, double scale) const {
  const Options& o = options_[static_cast<std::size_t>(p.group)];
  const double rate = lr(p.group);
  const auto t = static_cast<double>(p.steps);
  const kernels::AdamCoefficients c{.scale = scale,
                                    .decay = decoupled_ ? 0 : o.weight_decay,
                                    .shrink = decoupled_ ? 1 - rate * o.weight_decay : 1,
                                    .beta1 = o.betas[0],
                                    .beta2 = o.betas[1],
                                    .step_size = rate / (1 - std::pow(o.betas[0], t)),
                                    .root_scale = 1 / std::sqrt(1 - std::pow(o.betas[1], t)),
                                    .eps = o.eps};
  return [c](const auto& arrays) { kernels::adam(c, arrays); };
}

namespace {

std::vector<Adam::Group> as_adam(const std::vector<AdamW::Group>& groups) {
  std::vector<Adam::Group> out;
  for (const auto& [params, o] : groups) {
    out.push_back(
        {params,
         {.lr = o.lr, .betas = o.betas, .eps = o.eps, .weight_decay = o.weight_decay, .amsgrad = o.amsgrad}});
  }
  return out;
}

}  // namespace

AdamW::AdamW(Parameters params, Options options) : AdamW(std::vector<Group>{{std::move(params), options}}) {}

AdamW::AdamW(std::vector<Group> groups) : Adam("AdamW", as_adam(groups), true) {}

}  // namespace rill::optim
