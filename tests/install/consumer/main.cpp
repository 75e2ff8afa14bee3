// Uses each library of an installed rill: trains a GRU to tell rising from falling sequences, and catches a
// rill::Error that the library throws.
#include <fmt/format.h>

#include <cstdint>

#include <rill/rill.h>

namespace {

class Slope final : public rill::nn::Module {
 public:
  explicit Slope(rill::Rng& rng)
      : gru_({.input_size = 1, .hidden_size = 8}, rng), score_({.in_features = 8, .out_features = 2}, rng) {}

  // x [T, B, 1] -> scores [B, 2].
  rill::Tensor operator()(const rill::Tensor& x) const { return score_(gru_(x).output.select(0, -1)); }
  void members(rill::nn::Members& m) override { m("gru", gru_)("score", score_); }

 private:
  rill::nn::GRU gru_;
  rill::nn::Linear score_;
};

}  // namespace

int main() {
  constexpr std::int64_t steps = 6, batch = 16;
  rill::Rng rng(1);
  rill::Tensor x = rill::zeros({steps, batch, 1});
  rill::Tensor y = rill::zeros({batch}, rill::int64);
  for (std::int64_t b = 0; b < batch; ++b) {
    const double start = rng.uniform();
    const double slope = b % 2 == 0 ? -0.2 : 0.2;
    y.mutable_data<std::int64_t>()[b] = b % 2;
    for (std::int64_t t = 0; t < steps; ++t) {
      x.mutable_data<float>()[t * batch + b] = static_cast<float>(start + slope * static_cast<double>(t));
    }
  }

  const Slope model(rng);
  rill::optim::Adam adam(model.named_parameters(), {.lr = 0.05});
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    adam.zero_grad();
    const rill::Tensor loss = rill::cross_entropy(model(x), y);
    loss.backward();
    adam.step();
    (step == 0 ? first : last) = loss.item();
  }

  bool rejected = false;
  try {
    rill::matmul(rill::zeros({2, 3}), rill::zeros({4, 5}));
  } catch (const rill::Error&) {
    rejected = true;
  }
  fmt::print("loss {:.3f} -> {:.3f}, bad shapes {}\n", first, last, rejected ? "rejected" : "accepted");
  return last < 0.2 * first && rejected ? 0 : 1;
}
