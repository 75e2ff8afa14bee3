#include <rill/nn/recurrent/lstm.h>

#include <vector>

#include <rill/core/ops.h>
#include <rill/nn/recurrent/lstm_kernels.h>
#include <rill/nn/recurrent/unit.h>

namespace rill::nn {

namespace reference {

RecurrentState lstm_step(const Tensor& x, const RecurrentState& state, const RecurrentWeights& w) {
  const Tensor sums = detail::affine(x, w.ih, w.bias_ih) + detail::affine(state.h, w.hh, w.bias_hh);
  const std::vector<Tensor> gates = chunk(sums, 4, 1);
  const Tensor i = sigmoid(gates[0]), f = sigmoid(gates[1]), g = tanh(gates[2]), o = sigmoid(gates[3]);
  const Tensor c = f * state.c + i * g;
  return {o * tanh(c), c};
}

}  // namespace reference

const detail::Unit detail::lstm_unit{
    .name = "lstm",
    .module = "LSTM",
    .gates = 4,
    .states = 2,
    .kernels32 = {kernels::lstm_forward<float>, kernels::lstm_backward<float>},
    .kernels64 = {kernels::lstm_forward<double>, kernels::lstm_backward<double>},
    .definition = reference::lstm_step,
    .make_weights = make_uniform_weights,
    .list_weights = list_stacked_weights};

LSTMCell::LSTMCell(const LSTMCellOptions& options, Rng& rng)
    : RecurrentCell(detail::lstm_unit, options, rng) {}

RecurrentState LSTMCell::operator()(const Tensor& x, const RecurrentState& state) const {
  return run(x, state);
}

LSTM::LSTM(const LSTMOptions& options, Rng& rng) : RecurrentLayers(detail::lstm_unit, options, rng) {}

RecurrentOutput LSTM::operator()(const Tensor& x, const RecurrentInputs& given) const {
  return run(x, given);
}

}  // namespace rill::nn
