// A custom recurrent cell, composed of core ops, trained on the adding problem: the sum of the two marked
// numbers of a sequence (Hochreiter and Schmidhuber 1997).
#include <fmt/format.h>

#include <custom_cell/adder.h>
#include <rill/rill.h>

namespace {

using rill::Tensor;

struct MarkedNumbers {
  Tensor x;  // [T, B, 2]: a number in [0, 1) and a mark
  Tensor y;  // [B]: the sum of the two marked numbers
};

MarkedNumbers draw_batch(std::int64_t steps, std::int64_t batch, rill::Rng& rng) {
  MarkedNumbers made{rill::zeros({steps, batch, 2}), rill::zeros({batch})};
  float* x = made.x.mutable_data<float>();
  float* y = made.y.mutable_data<float>();
  const std::int64_t half = steps / 2;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < steps; ++t) x[(t * batch + b) * 2] = static_cast<float>(rng.uniform());
    for (std::int64_t mark = 0; mark < 2; ++mark) {
      const auto t = mark * half + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(half)));
      x[(t * batch + b) * 2 + 1] = 1;
      y[b] += x[(t * batch + b) * 2];
    }
  }
  return made;
}

}  // namespace

int main() try {
  rill::Rng rng(1);
  const custom_cell::Adder model(32, rng);
  rill::optim::Adam adam(model.named_parameters(), {.lr = 5e-3});
  double average = 0.17;  // the error of always predicting 1
  for (int step = 1; step <= 600; ++step) {
    const MarkedNumbers batch = draw_batch(20, 32, rng);
    adam.zero_grad();
    const Tensor loss = rill::mse_loss(model(batch.x), batch.y);
    loss.backward();
    rill::optim::clip_grad_norm_(model.parameters(), 1);
    adam.step();
    average += 0.02 * (loss.item() - average);
    if (step % 100 == 0) fmt::print("step {:3}  mean squared error {:.4f}\n", step, average);
  }
  fmt::print("{}\n", average < 0.02 ? "learnt: always predicting 1 gives 0.167" : "not learnt");
  return average < 0.02 ? 0 : 1;
} catch (const rill::Error& error) {
  fmt::print(stderr, "custom_cell: {}\n", error.what());
  return 1;
}
