#include <rill/nn/recurrent/rau.h>

#include <array>
#include <string>

#include <rill/nn/init.h>

namespace rill::nn {
namespace {

constexpr std::array<char, 4> gate_names{'r', 'z', 'h', 'a'};

/// Each gate's own matrix is orthogonal.
Tensor orthogonal_gates(std::int64_t rows, std::int64_t hidden, Rng& rng) {
  const Tensor joined = empty({rows, 4 * hidden});
  for (std::int64_t g = 0; g < 4; ++g) init::orthogonal_(joined.narrow(1, g * hidden, hidden), rng);
  return Tensor(joined).set_requires_grad();
}

RauWeights make_weights(std::int64_t input, std::int64_t hidden, bool bias, Rng& rng) {
  RauWeights w{.ih = orthogonal_gates(input, hidden, rng),
               .hh = orthogonal_gates(hidden, hidden, rng),
               .aa = init::orthogonal_(empty({hidden, hidden}), rng).set_requires_grad()};
  if (bias) w.bias = zeros({4 * hidden}).set_requires_grad();
  return w;
}

/// The part of an array along its last dimension that belongs to a gate.
Members::View gate_view(std::size_t gate) {
  return [gate](const Tensor& array) {
    const std::int64_t hidden = array.size(-1) / 4;
    return array.narrow(-1, static_cast<std::int64_t>(gate) * hidden, hidden);
  };
}

void list_weights(Members& m, const RauWeights& w, const std::string& prefix) {
  for (std::size_t g = 0; g < gate_names.size(); ++g) {
    m(prefix + "weight_x" + gate_names[g], w.ih, gate_view(g))(prefix + "weight_h" + gate_names[g], w.hh,
                                                               gate_view(g));
  }
  m(prefix + "weight_aa", w.aa);
  if (!w.bias.defined()) return;
  for (std::size_t g = 0; g < gate_names.size(); ++g)
    m(prefix + "bias_" + gate_names[g], w.bias, gate_view(g));
}

}  // namespace

// --- the definition

namespace reference {

Tensor rau_step(const Tensor& x, const Tensor& h, const RauWeights& w) {
  const Tensor from_x = matmul(x, w.ih);
  const std::vector<Tensor> i = chunk(w.bias.defined() ? from_x + w.bias : from_x, 4, 1);
  const std::vector<Tensor> s = chunk(matmul(h, w.hh), 4, 1);
  const Tensor r = sigmoid(i[0] + s[0]);
  const Tensor z = sigmoid(i[1] + s[1]);
  const Tensor candidate = tanh(i[2] + r * s[2]);
  const Tensor a = sigmoid(i[3] + s[3] + matmul(candidate, w.aa));
  return (1.0 - z) * h + z * a * candidate;
}

SequenceOutput rau(const Tensor& x, std::span<const RauWeights> directions, const SequenceInputs& given) {
  return sequence(x, static_cast<std::int64_t>(directions.size()), directions[0].hh.size(0), given,
                  [&](std::int64_t d, const Tensor& x_t, const Tensor& h) {
                    return rau_step(x_t, h, directions[static_cast<std::size_t>(d)]);
                  });
}

}  // namespace reference

// --- modules

RAUCell::RAUCell(RAUCellOptions options, Rng& rng) : options_(options) {
  detail::check_options("RAUCell", options);
  weights_ = make_weights(options.input_size, options.hidden_size, options.bias, rng);
}

Tensor RAUCell::operator()(const Tensor& x, const Tensor& h) const {
  return detail::run_cell("rau", options_, x, h, [&](const Tensor& one_step, const SequenceInputs& given) {
    return rau_sequence(one_step, std::span(&weights_, 1), given);
  });
}

void RAUCell::members(Members& m) const { list_weights(m, weights_, ""); }

RAU::RAU(RAUOptions options, Rng& rng) : options_(options), dropout_({.p = options.dropout}, rng) {
  detail::check_options("RAU", options);
  for (std::int64_t layer = 0; layer < options.num_layers; ++layer) {
    for (std::int64_t d = 0; d < options.directions(); ++d) {
      weights_.push_back(make_weights(options.input_of(layer), options.hidden_size, options.bias, rng));
    }
  }
}

std::span<const RauWeights> RAU::weights(std::int64_t layer) const {
  check(layer >= 0 && layer < options_.num_layers, "rau: there is no layer {}; it has {}", layer,
        options_.num_layers);
  const auto d = static_cast<std::size_t>(options_.directions());
  return std::span(weights_).subspan(static_cast<std::size_t>(layer) * d, d);
}

SequenceOutput RAU::operator()(const Tensor& x, const SequenceInputs& given) const {
  return detail::run_layers("rau", options_, dropout_, x, given,
                            [&](std::int64_t layer, const Tensor& input, const SequenceInputs& inputs) {
                              return rau_sequence(input, weights(layer), inputs);
                            });
}

void RAU::members(Members& m) const {
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const auto d = static_cast<std::size_t>(options_.directions());
    list_weights(m, weights_[i], "cells." + std::to_string(i / d) + (i % d == 1 ? "_reverse." : "."));
  }
  m("dropout", dropout_);
}

}  // namespace rill::nn
