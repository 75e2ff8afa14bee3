#include <rill/nn/recurrent/gru.h>

#include <vector>

#include <rill/core/ops.h>
#include <rill/nn/recurrent/gru_kernels.h>
#include <rill/nn/recurrent/unit.h>

namespace rill::nn {

namespace reference {

Tensor gru_step(const Tensor& x, const Tensor& h, const RecurrentWeights& w) {
  const std::vector<Tensor> i = chunk(detail::affine(x, w.ih, w.bias_ih), 3, 1);
  const std::vector<Tensor> s = chunk(detail::affine(h, w.hh, w.bias_hh), 3, 1);
  const Tensor r = sigmoid(i[0] + s[0]);
  const Tensor z = sigmoid(i[1] + s[1]);
  const Tensor n = tanh(i[2] + r * s[2]);
  return (1.0 - z) * n + z * h;
}

}  // namespace reference

const detail::Unit detail::gru_unit{
    .name = "gru",
    .module = "GRU",
    .gates = 3,
    .candidate = 2,
    .kernels32 = {kernels::gru_forward<float>, kernels::gru_backward<float>},
    .kernels64 = {kernels::gru_forward<double>, kernels::gru_backward<double>},
    .definition =
        [](const Tensor& x, const RecurrentState& state, const RecurrentWeights& w) {
          return RecurrentState(reference::gru_step(x, state.h, w));
        },
    .make_weights = make_uniform_weights,
    .list_weights = list_stacked_weights};

GRUCell::GRUCell(const GRUCellOptions& options, Rng& rng) : RecurrentCell(detail::gru_unit, options, rng) {}

Tensor GRUCell::operator()(const Tensor& x, const Tensor& h) const { return run(x, h).h; }

GRU::GRU(const GRUOptions& options, Rng& rng) : RecurrentLayers(detail::gru_unit, options, rng) {}

SequenceOutput GRU::operator()(const Tensor& x, const SequenceInputs& given) const { return run(x, given); }

}  // namespace rill::nn
