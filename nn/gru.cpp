#include <rill/nn/gru.h>

#include <cmath>
#include <string>

#include <rill/nn/init.h>

namespace rill::nn {
namespace {

GruWeights make_weights(std::int64_t input, std::int64_t hidden, bool bias, Rng& rng) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  const auto uniform = [&](const Shape& shape) {
    return init::uniform_(empty(shape), -bound, bound, rng).set_requires_grad();
  };
  GruWeights w{.ih = uniform({input, 3 * hidden}), .hh = uniform({hidden, 3 * hidden})};
  if (bias) {
    w.bias_ih = uniform({3 * hidden});
    w.bias_hh = uniform({3 * hidden});
  }
  return w;
}

Tensor transposed(const Tensor& array) { return array.t(); }

void list_weights(Members& m, const GruWeights& w, const std::string& suffix) {
  m("weight_ih" + suffix, w.ih, transposed)("weight_hh" + suffix, w.hh, transposed);
  m("bias_ih" + suffix, w.bias_ih)("bias_hh" + suffix, w.bias_hh);
}

/// x·W + b, the bias being optional.
Tensor affine(const Tensor& x, const Tensor& w, const Tensor& bias) {
  return bias.defined() ? matmul(x, w) + bias : matmul(x, w);
}

}  // namespace

// --- the definition ----------------------------------------------------------------------------------------

namespace reference {

Tensor gru_step(const Tensor& x, const Tensor& h, const GruWeights& w) {
  const std::vector<Tensor> i = chunk(affine(x, w.ih, w.bias_ih), 3, 1);
  const std::vector<Tensor> s = chunk(affine(h, w.hh, w.bias_hh), 3, 1);
  const Tensor r = sigmoid(i[0] + s[0]);
  const Tensor z = sigmoid(i[1] + s[1]);
  const Tensor n = tanh(i[2] + r * s[2]);
  return (1.0 - z) * n + z * h;
}

SequenceOutput gru(const Tensor& x, std::span<const GruWeights> directions, const SequenceInputs& given) {
  const std::int64_t steps = x.size(0), batch = x.size(1), hidden = directions[0].hh.size(0);
  const Tensor none = zeros({batch, hidden}, x.dtype());
  std::vector<Tensor> outputs, last;
  for (std::size_t d = 0; d < directions.size(); ++d) {
    Tensor h = given.h0.defined() ? given.h0.select(0, static_cast<std::int64_t>(d)) : none;
    std::vector<Tensor> states(static_cast<std::size_t>(steps));
    for (std::int64_t s = 0; s < steps; ++s) {
      const std::int64_t t = d == 0 ? s : steps - 1 - s;
      Tensor& state = states[static_cast<std::size_t>(t)];
      state = gru_step(x.select(0, t), h, directions[d]);
      if (given.lengths.defined()) {
        const Tensor valid = gt(given.lengths, static_cast<double>(t)).unsqueeze(1);
        h = where(valid, state, h);
        state = where(valid, state, none);
      } else {
        h = state;
      }
    }
    outputs.push_back(steps == 0 ? zeros({0, batch, hidden}, x.dtype()) : stack(states));
    last.push_back(h);
  }
  return {.output = cat(outputs, 2), .h_n = stack(last)};
}

}  // namespace reference

// --- modules -----------------------------------------------------------------------------------------------

GRUCell::GRUCell(GRUCellOptions options, Rng& rng) : options_(options) {
  check(options.input_size >= 1 && options.hidden_size >= 1,
        "GRUCell: input_size {} and hidden_size {} must be at least 1", options.input_size,
        options.hidden_size);
  weights_ = make_weights(options.input_size, options.hidden_size, options.bias, rng);
}

Tensor GRUCell::operator()(const Tensor& x, const Tensor& h) const {
  check(x.dim() == 2 && x.size(1) == options_.input_size, "gru: the input is {}; a cell needs [B, {}]",
        x.shape(), options_.input_size);
  check(!h.defined() || h.shape() == Shape{x.size(0), options_.hidden_size},
        "gru: the state is {}; an input of {} needs [{}, {}]", h.defined() ? h.shape() : Shape{}, x.shape(),
        x.size(0), options_.hidden_size);
  const auto out =
      gru_sequence(x.unsqueeze(0), std::span(&weights_, 1), {.h0 = h.defined() ? h.unsqueeze(0) : h});
  return out.h_n.squeeze(0);
}

void GRUCell::members(Members& m) const { list_weights(m, weights_, ""); }

GRU::GRU(GRUOptions options, Rng& rng) : options_(options), dropout_({.p = options.dropout}, rng) {
  check(options.input_size >= 1 && options.hidden_size >= 1 && options.num_layers >= 1,
        "GRU: input_size {}, hidden_size {} and num_layers {} must be at least 1", options.input_size,
        options.hidden_size, options.num_layers);
  for (std::int64_t layer = 0; layer < options.num_layers; ++layer) {
    const std::int64_t input = layer == 0 ? options.input_size : directions() * options.hidden_size;
    for (std::int64_t d = 0; d < directions(); ++d) {
      weights_.push_back(make_weights(input, options.hidden_size, options.bias, rng));
    }
  }
}

std::span<const GruWeights> GRU::weights(std::int64_t layer) const {
  check(layer >= 0 && layer < options_.num_layers, "gru: there is no layer {}; it has {}", layer,
        options_.num_layers);
  const auto d = static_cast<std::size_t>(directions());
  return std::span(weights_).subspan(static_cast<std::size_t>(layer) * d, d);
}

SequenceOutput GRU::operator()(const Tensor& x, const SequenceInputs& given) const {
  check(x.dim() == 3 && x.size(2) == options_.input_size, "gru: the input is {}; this layer needs [{}, {}]",
        x.shape(), options_.batch_first ? "B, T" : "T, B", options_.input_size);
  const std::int64_t d = directions(), batch = x.size(options_.batch_first ? 0 : 1);
  const Shape states{options_.num_layers * d, batch, options_.hidden_size};
  check(!given.h0.defined() || given.h0.shape() == states, "gru: h0 is {}; an input of {} needs {}",
        given.h0.defined() ? given.h0.shape() : Shape{}, x.shape(), states);
  SequenceOutput out{.output = options_.batch_first ? x.transpose(0, 1) : x, .h_n = {}};
  std::vector<Tensor> last;
  for (std::int64_t layer = 0; layer < options_.num_layers; ++layer) {
    if (layer > 0) out.output = dropout_(out.output);
    const Tensor h0 = given.h0.defined() ? given.h0.narrow(0, layer * d, d) : Tensor();
    out = gru_sequence(out.output, weights(layer), {.h0 = h0, .lengths = given.lengths});
    last.push_back(out.h_n);
  }
  if (last.size() > 1) out.h_n = cat(last, 0);
  if (options_.batch_first) out.output = out.output.transpose(0, 1);
  return out;
}

void GRU::members(Members& m) const {
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const auto d = static_cast<std::size_t>(directions());
    list_weights(m, weights_[i], "_l" + std::to_string(i / d) + (i % d == 1 ? "_reverse" : ""));
  }
  m("dropout", dropout_);
}

}  // namespace rill::nn
