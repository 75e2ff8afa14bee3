/// RMSprop.
#pragma once

#include <vector>

#include <rill/optim/optimizer.h>

#pragma GCC visibility push(default)

namespace rill::optim {

struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
};

/// Gradients divided by a running mean of their size. With g = gradient + weight_decay · p:
///   s = alpha s + (1 - alpha) g²;  u = g / (√s + eps);  buffer = momentum · buffer + u;  p -= lr · buffer
/// centered: mean = alpha mean + (1 - alpha) g, and s - mean² (rounded up to 0) stands for s under the root.
/// State: "square_avg", when centered "grad_avg", with momentum "momentum_buffer". Throws unless 0 <= alpha
/// <= 1 and the other options are finite and at least 0. (Hinton 2012; Graves 2013; in PyTorch's form.)
class RMSprop final : public Optimizer {
 public:
  using Options = RMSpropOptions;
  using Group = ParameterGroup<Options>;

  explicit RMSprop(Parameters params, Options options = {});
  explicit RMSprop(std::vector<Group> groups);

 private:
  void update(double scale) override;

  std::vector<Options> options_;
};

}  // namespace rill::optim

#pragma GCC visibility pop
