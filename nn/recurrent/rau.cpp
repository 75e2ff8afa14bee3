#include <rill/nn/recurrent/rau.h>

#include <array>
#include <string>
#include <vector>

#include <rill/core/ops.h>
#include <rill/nn/init.h>
#include <rill/nn/recurrent/rau_kernels.h>
#include <rill/nn/recurrent/unit.h>

namespace rill::nn {

namespace reference {

Tensor rau_step(const Tensor& x, const Tensor& h, const RecurrentWeights& w) {
  const std::vector<Tensor> i = chunk(detail::affine(x, w.ih, w.bias_ih), 4, 1);
  const std::vector<Tensor> s = chunk(matmul(h, w.hh), 4, 1);
  const Tensor r = sigmoid(i[0] + s[0]);
  const Tensor z = sigmoid(i[1] + s[1]);
  const Tensor candidate = tanh(i[2] + r * s[2]);
  const Tensor a = sigmoid(i[3] + s[3] + matmul(candidate, w.inner));
  return (1.0 - z) * h + z * a * candidate;
}

}  // namespace reference

namespace {

constexpr std::array<char, 4> gate_names{'r', 'z', 'h', 'a'};

/// Each gate's own matrix is orthogonal.
Tensor orthogonal_gates(std::int64_t rows, std::int64_t hidden, Rng& rng) {
  Tensor gates = empty({rows, 4 * hidden});
  for (std::int64_t g = 0; g < 4; ++g) init::orthogonal_(gates.narrow(1, g * hidden, hidden), rng);
  return gates.set_requires_grad();
}

RecurrentWeights make_orthogonal_weights(const detail::Unit&, std::int64_t input, std::int64_t hidden,
                                         bool bias, Rng& rng) {
  return {.ih = orthogonal_gates(input, hidden, rng),
          .hh = orthogonal_gates(hidden, hidden, rng),
          .bias_ih = bias ? zeros({4 * hidden}).set_requires_grad() : Tensor(),
          .inner = init::orthogonal_(empty({hidden, hidden}), rng).set_requires_grad()};
}

void list_weights_by_gate(Members& m, RecurrentWeights& w, const std::string& layer) {
  const std::string prefix = layer.empty() ? "" : "cells." + layer + '.';
  const auto columns_of = [](std::size_t gate) {
    return [gate](const Tensor& gates) {
      const std::int64_t hidden = gates.size(-1) / 4;
      return gates.narrow(-1, static_cast<std::int64_t>(gate) * hidden, hidden);
    };
  };
  for (std::size_t g = 0; g < gate_names.size(); ++g) {
    m(prefix + "weight_x" + gate_names[g], w.ih, columns_of(g));
    m(prefix + "weight_h" + gate_names[g], w.hh, columns_of(g));
  }
  m(prefix + "weight_aa", w.inner);
  for (std::size_t g = 0; g < gate_names.size(); ++g)
    m(prefix + "bias_" + gate_names[g], w.bias_ih, columns_of(g));
}

}  // namespace

const detail::Unit detail::rau_unit{
    .name = "rau",
    .module = "RAU",
    .gates = 4,
    .biases = 1,
    .candidate = 2,
    .inner_gate = 3,
    .kernels32 = {kernels::rau_forward<float>, kernels::rau_backward<float>,
                  kernels::rau_forward_inner<float>, kernels::rau_backward_inner<float>},
    .kernels64 = {kernels::rau_forward<double>, kernels::rau_backward<double>,
                  kernels::rau_forward_inner<double>, kernels::rau_backward_inner<double>},
    .definition =
        [](const Tensor& x, const RecurrentState& state, const RecurrentWeights& w) {
          return RecurrentState(reference::rau_step(x, state.h, w));
        },
    .make_weights = make_orthogonal_weights,
    .list_weights = list_weights_by_gate};

RAUCell::RAUCell(const RAUCellOptions& options, Rng& rng) : RecurrentCell(detail::rau_unit, options, rng) {}

Tensor RAUCell::operator()(const Tensor& x, const Tensor& h) const { return run(x, h).h; }

RAU::RAU(const RAUOptions& options, Rng& rng) : RecurrentLayers(detail::rau_unit, options, rng) {}

SequenceOutput RAU::operator()(const Tensor& x, const SequenceInputs& given) const { return run(x, given); }

}  // namespace rill::nn
