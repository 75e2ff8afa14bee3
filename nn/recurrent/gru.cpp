#include <rill/nn/recurrent/gru.h>

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

// --- the definition

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
  return sequence(x, static_cast<std::int64_t>(directions.size()), directions[0].hh.size(0), given,
                  [&](std::int64_t d, const Tensor& x_t, const Tensor& h) {
                    return gru_step(x_t, h, directions[static_cast<std::size_t>(d)]);
                  });
}

}  // namespace reference

// --- modules

GRUCell::GRUCell(GRUCellOptions options, Rng& rng) : options_(options) {
  detail::check_options("GRUCell", options);
  weights_ = make_weights(options.input_size, options.hidden_size, options.bias, rng);
}

Tensor GRUCell::operator()(const Tensor& x, const Tensor& h) const {
  return detail::run_cell("gru", options_, x, h, [&](const Tensor& one_step, const SequenceInputs& given) {
    return gru_sequence(one_step, std::span(&weights_, 1), given);
  });
}

void GRUCell::members(Members& m) const { list_weights(m, weights_, ""); }

GRU::GRU(GRUOptions options, Rng& rng) : options_(options), dropout_({.p = options.dropout}, rng) {
  detail::check_options("GRU", options);
  for (std::int64_t layer = 0; layer < options.num_layers; ++layer) {
    for (std::int64_t d = 0; d < options.directions(); ++d) {
      weights_.push_back(make_weights(options.input_of(layer), options.hidden_size, options.bias, rng));
    }
  }
}

std::span<const GruWeights> GRU::weights(std::int64_t layer) const {
  check(layer >= 0 && layer < options_.num_layers, "gru: there is no layer {}; it has {}", layer,
        options_.num_layers);
  const auto d = static_cast<std::size_t>(options_.directions());
  return std::span(weights_).subspan(static_cast<std::size_t>(layer) * d, d);
}

SequenceOutput GRU::operator()(const Tensor& x, const SequenceInputs& given) const {
  return detail::run_layers("gru", options_, dropout_, x, given,
                            [&](std::int64_t layer, const Tensor& input, const SequenceInputs& inputs) {
                              return gru_sequence(input, weights(layer), inputs);
                            });
}

void GRU::members(Members& m) const {
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const auto d = static_cast<std::size_t>(options_.directions());
    list_weights(m, weights_[i], "_l" + std::to_string(i / d) + (i % d == 1 ? "_reverse" : ""));
  }
  m("dropout", dropout_);
}

}  // namespace rill::nn
