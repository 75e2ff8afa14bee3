#include <parity/replay.h>
#include <rill/core/ops.h>
#include <rill/optim/clip.h>

namespace rill::parity {
namespace {

/// The inputs are gradients: of parameters made for them.
std::vector<Tensor> parameters_with_gradients(Replay& r) {
  std::vector<Tensor> parameters;
  for (const std::string& name : r.given().names("in")) {
    const Tensor gradient = r.call().tensor(name);
    Tensor parameter = zeros_like(gradient).set_requires_grad();
    parameter.set_grad(gradient);
    parameters.push_back(parameter);
  }
  return parameters;
}

}  // namespace

Results replay_utility(Replay& r) {
  Call& c = r.call();
  const std::vector<Tensor> parameters = parameters_with_gradients(r);
  NamedTensors outputs;
  if (r.given().op == "clip_grad_norm_") {
    const double norm = optim::clip_grad_norm_(parameters, c.number("max_norm"), c.number("norm_type", 2));
    outputs.emplace_back("total_norm", scalar(norm, r.dtype()));
  } else if (r.given().op == "clip_grad_value_") {
    optim::clip_grad_value_(parameters, c.number("clip_value"));
  } else {
    throw Unsupported(fmt::format("rill has no utility '{}'", r.given().op));
  }
  c.check_all_used();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    outputs.emplace_back(r.given().names("in")[i], parameters[i].grad());
  }
  return r.finish(outputs);
}

}  // namespace rill::parity
