// A recurrent cell of one's own, from plain ops, trained on the adding problem: two marked numbers of a
// sequence are to be added (Hochreiter and Schmidhuber 1997).
#include <fmt/format.h>

#include <rill/core/core.h>
#include <rill/nn/nn.h>
#include <rill/optim/optim.h>

namespace {

using rill::Tensor;

/// The update gate RNN (Collins et al. 2017): u = σ(A[x; h]), h' = u ∘ h + (1 - u) ∘ tanh(C[x; h]).
class UpdateGateCell final : public rill::nn::Module {
 public:
  UpdateGateCell(std::int64_t inputs, std::int64_t hidden, rill::Rng& rng)
      : gate_({.in_features = inputs + hidden, .out_features = hidden}, rng),
        candidate_({.in_features = inputs + hidden, .out_features = hidden}, rng) {}

  Tensor operator()(const Tensor& x, const Tensor& h) const {
    const Tensor both = rill::cat({x, h}, 1);
    const Tensor u = rill::sigmoid(gate_(both) + 1.0);  // at first it remembers
    return u * h + (1.0 - u) * rill::tanh(candidate_(both));
  }
  void members(rill::nn::Members& m) const override { m("gate", gate_)("candidate", candidate_); }

 private:
  rill::nn::Linear gate_, candidate_;
};

/// Reads a sequence with the cell and says one number.
class Adder final : public rill::nn::Module {
 public:
  Adder(std::int64_t hidden, rill::Rng& rng)
      : hidden_(hidden), cell_(2, hidden, rng), out_({.in_features = hidden, .out_features = 1}, rng) {}

  /// x [T, B, 2] → [B].
  Tensor operator()(const Tensor& x) const {
    Tensor h = rill::zeros({x.size(1), hidden_});
    for (std::int64_t t = 0; t < x.size(0); ++t) h = cell_(x.select(0, t), h);
    return out_(h).squeeze(1);
  }
  void members(rill::nn::Members& m) const override { m("cell", cell_)("out", out_); }

 private:
  std::int64_t hidden_;
  UpdateGateCell cell_;
  rill::nn::Linear out_;
};

struct Batch {
  Tensor x;  // [T, B, 2]: a number in [0, 1) and a mark
  Tensor y;  // [B]: the sum of the two marked numbers
};

Batch adding_problem(std::int64_t steps, std::int64_t batch, rill::Rng& rng) {
  Batch made{rill::zeros({steps, batch, 2}), rill::zeros({batch})};
  float* x = made.x.data<float>();
  float* y = made.y.data<float>();
  const std::int64_t half = steps / 2;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < steps; ++t) x[(t * batch + b) * 2] = static_cast<float>(rng.uniform());
    for (std::int64_t part = 0; part < 2; ++part) {
      const auto t = part * half + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(half)));
      x[(t * batch + b) * 2 + 1] = 1;
      y[b] += x[(t * batch + b) * 2];
    }
  }
  return made;
}

}  // namespace

int main() try {
  rill::Rng rng(1);
  const Adder model(32, rng);
  rill::optim::Adam adam(model.named_parameters(), {.lr = 5e-3});
  double average = 0.17;  // the error of always saying 1
  for (int step = 1; step <= 1500; ++step) {
    const Batch batch = adding_problem(20, 32, rng);
    adam.zero_grad();
    const Tensor loss = rill::mse_loss(model(batch.x), batch.y);
    loss.backward();
    rill::optim::clip_grad_norm_(model.parameters(), 1);
    adam.step();
    average += 0.02 * (loss.item() - average);
    if (step % 250 == 0) fmt::print("step {:4}  mean squared error {:.4f}\n", step, average);
  }
  fmt::print("{}\n", average < 0.02 ? "learnt: always saying 1 would give 0.167" : "not learnt");
  return average < 0.02 ? 0 : 1;
} catch (const rill::Error& error) {
  fmt::print(stderr, "custom_cell: {}\n", error.what());
  return 1;
}
