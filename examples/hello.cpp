// First steps: tensors, a gradient, and a line fitted to noisy points.
#include <fmt/format.h>

#include <rill/rill.h>

int main() try {
  fmt::print("{}\n\n", rill::about());

  // A gradient: d/dx of the sum of x² is 2x.
  rill::Tensor x = rill::tensor({1.0f, 2.0f, 3.0f}).set_requires_grad();
  rill::sum(x * x).backward();
  fmt::print("x      = {}\ndx     = {}\n\n", x, x.grad());

  // A linear layer fits the line y = 2x - 1 to noisy points.
  rill::Rng rng(1);
  const rill::Tensor inputs = rill::randn({64, 1}, rng);
  const rill::Tensor targets = 2.0 * inputs - 1.0 + 0.1 * rill::randn({64, 1}, rng);
  rill::nn::Linear line({.in_features = 1, .out_features = 1}, rng);
  rill::optim::Adam adam(line.named_parameters(), {.lr = 0.1});
  for (int step = 0; step <= 100; ++step) {
    adam.zero_grad();
    const rill::Tensor loss = rill::mse_loss(line(inputs), targets);
    loss.backward();
    adam.step();
    if (step % 25 == 0) fmt::print("step {:3}  loss {:.4f}\n", step, loss.item());
  }
  fmt::print("\ny = {:.2f} x + {:.2f}  (the points have 2 and -1)\n", line.weight().item(),
             line.bias().item());
  return 0;
} catch (const rill::Error& error) {
  fmt::print(stderr, "hello: {}\n", error.what());
  return 1;
}
