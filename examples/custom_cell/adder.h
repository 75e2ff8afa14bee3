/// A custom recurrent cell, composed of core ops, and a network that uses it.
#pragma once

#include <cstdint>

#include <rill/rill.h>

namespace custom_cell {

using rill::Tensor;

/// The update gate RNN (Collins et al. 2017): u = σ(A[x; h]), h' = u ∘ h + (1 - u) ∘ tanh(C[x; h]).
class UpdateGateCell final : public rill::nn::Module {
 public:
  UpdateGateCell(std::int64_t inputs, std::int64_t hidden, rill::Rng& rng)
      : gate_({.in_features = inputs + hidden, .out_features = hidden}, rng),
        candidate_({.in_features = inputs + hidden, .out_features = hidden}, rng) {}

  Tensor operator()(const Tensor& x, const Tensor& h) const {
    const Tensor both = rill::cat({x, h}, 1);
    const Tensor u = rill::sigmoid(gate_(both) + 1.0);  // biased to remember
    return u * h + (1.0 - u) * rill::tanh(candidate_(both));
  }
  void members(rill::nn::Members& m) override { m("gate", gate_)("candidate", candidate_); }

 private:
  rill::nn::Linear gate_, candidate_;
};

/// Runs the cell over a sequence; a linear layer maps the last state to one value.
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
  void members(rill::nn::Members& m) override { m("cell", cell_)("out", out_); }

 private:
  std::int64_t hidden_;
  UpdateGateCell cell_;
  rill::nn::Linear out_;
};

}  // namespace custom_cell
