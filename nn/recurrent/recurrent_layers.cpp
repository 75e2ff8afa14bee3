#include <rill/nn/recurrent/recurrent_layers.h>

#include <cmath>
#include <string>
#include <utility>

#include <rill/core/ops.h>
#include <rill/nn/init.h>
#include <rill/nn/recurrent/sequence_op.h>
#include <rill/nn/recurrent/unit.h>

namespace rill::nn {

RecurrentState RecurrentState::rows(const Tensor& index) const {
  const auto picked = [&](const Tensor& t) { return t.defined() ? index_select(t, t.dim() - 2, index) : t; };
  return {picked(h), picked(c)};
}

// --- checks

namespace {

using detail::largest_size;
using detail::Unit;

constexpr std::int64_t max_layers = 65536;

void check_sizes(const std::string& module, std::int64_t input, std::int64_t hidden) {
  check(detail::is_size(input) && detail::is_size(hidden),
        "{}: input_size {} and hidden_size {} must be in 1..{}", module, input, hidden, largest_size);
}

RecurrentLayersOptions checked(const Unit& unit, const RecurrentLayersOptions& o) {
  check_sizes(unit.module, o.input_size, o.hidden_size);
  check(o.num_layers >= 1 && o.num_layers <= max_layers, "{}: num_layers {} must be in 1..{}", unit.module,
        o.num_layers, max_layers);
  check(o.dropout >= 0 && o.dropout <= 1, "{}: dropout {} is outside 0..1", unit.module, o.dropout);
  return o;
}

/// Throws unless each part of the state is undefined or of the shape required by the input x.
void check_state(const Unit& unit, const RecurrentState& state, const Tensor& x, const Shape& wanted) {
  const auto check_part = [&](const char* part, const Tensor& t) {
    if (!t.defined()) return;
    check(t.shape() == wanted, "{}: {} is {}; an input of {} needs {}", unit.name, part, t.shape(), x.shape(),
          wanted);
  };
  check_part("h0", state.h);
  check_part("c0", state.c);
}

}  // namespace

// --- layers

RecurrentLayers::RecurrentLayers(const Unit& unit, const RecurrentLayersOptions& options, Rng& rng)
    : unit_(&unit), options_(checked(unit, options)), dropout_({.p = options.dropout}, rng) {
  for (std::int64_t layer = 0; layer < options.num_layers; ++layer) {
    for (std::int64_t d = 0; d < options.directions(); ++d) {
      weights_.push_back(
          unit.make_weights(unit, options.input_of(layer), options.hidden_size, options.bias, rng));
    }
  }
}

std::span<const RecurrentWeights> RecurrentLayers::weights(std::int64_t layer) const {
  detail::check_not_moved_from(unit_->name, !weights_.empty());
  check(layer >= 0 && layer < options_.num_layers, "{}: there is no layer {}; it has {}", unit_->name, layer,
        options_.num_layers);
  const auto d = static_cast<std::size_t>(options_.directions());
  return std::span(weights_).subspan(static_cast<std::size_t>(layer) * d, d);
}

RecurrentOutput RecurrentLayers::run(const Tensor& x, const RecurrentInputs& given) const {
  const RecurrentLayersOptions& o = options_;
  const std::int64_t d = o.directions();
  check(x.dim() == 3 && x.size(2) == o.input_size, "{}: the input is {}; this layer needs [{}, {}]",
        unit_->name, x.shape(), o.batch_first ? "B, T" : "T, B", o.input_size);
  check_state(*unit_, given.state, x, {o.num_layers * d, x.size(o.batch_first ? 0 : 1), o.hidden_size});
  RecurrentOutput out{.output = o.batch_first ? x.transpose(0, 1) : x, .last = {}};
  std::vector<Tensor> h, c;
  for (std::int64_t k = 0; k < o.num_layers; ++k) {
    if (k > 0) out.output = dropout_(out.output);
    const auto part = [&](const Tensor& t) { return t.defined() ? t.narrow(0, k * d, d) : t; };
    out =
        detail::sequence_op(*unit_, out.output, weights(k),
                            {.state = {part(given.state.h), part(given.state.c)}, .lengths = given.lengths});
    h.push_back(out.last.h);
    c.push_back(out.last.c);
  }
  if (h.size() > 1) out.last = {cat(h, 0), unit_->states == 2 ? cat(c, 0) : Tensor()};
  if (o.batch_first) out.output = out.output.transpose(0, 1);
  return out;
}

SequenceOutput RecurrentLayers::run(const Tensor& x, const SequenceInputs& given) const {
  auto [output, last] = run(x, RecurrentInputs{.state = given.h0, .lengths = given.lengths});
  return {.output = std::move(output), .h_n = std::move(last.h)};
}

void RecurrentLayers::members(Members& m) {
  const auto d = static_cast<std::size_t>(options_.directions());
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    unit_->list_weights(m, weights_[i], std::to_string(i / d) + (i % d == 1 ? "_reverse" : ""));
  }
  m("dropout", dropout_);
}

// --- cells

RecurrentCell::RecurrentCell(const Unit& unit, const RecurrentCellOptions& options, Rng& rng)
    : unit_(&unit), options_(options) {
  check_sizes(std::string(unit.module) + "Cell", options.input_size, options.hidden_size);
  weights_ = unit.make_weights(unit, options.input_size, options.hidden_size, options.bias, rng);
}

RecurrentState RecurrentCell::run(const Tensor& x, const RecurrentState& state) const {
  detail::check_not_moved_from(unit_->name, weights_.ih.defined());
  check(x.dim() == 2 && x.size(1) == options_.input_size, "{}: the input is {}; a cell needs [B, {}]",
        unit_->name, x.shape(), options_.input_size);
  check_state(*unit_, state, x, {x.size(0), options_.hidden_size});
  const auto one_layer = [](const Tensor& t) { return t.defined() ? t.unsqueeze(0) : t; };
  const RecurrentState last = detail::sequence_op(*unit_, x.unsqueeze(0), std::span(&weights_, 1),
                                                  {.state = {one_layer(state.h), one_layer(state.c)}})
                                  .last;
  return {last.h.squeeze(0), last.c.defined() ? last.c.squeeze(0) : Tensor()};
}

void RecurrentCell::members(Members& m) { unit_->list_weights(m, weights_, ""); }

// --- weights with PyTorch's names

namespace detail {

RecurrentWeights make_uniform_weights(const Unit& unit, std::int64_t input, std::int64_t hidden, bool bias,
                                      Rng& rng) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  const std::int64_t width = unit.gates * hidden;
  const auto uniform = [&](const Shape& shape) {
    return init::uniform_(empty(shape), -bound, bound, rng).set_requires_grad();
  };
  RecurrentWeights w{.ih = uniform({input, width}), .hh = uniform({hidden, width})};
  if (!bias) return w;
  w.bias_ih = uniform({width});
  w.bias_hh = uniform({width});
  return w;
}

void list_stacked_weights(Members& m, RecurrentWeights& w, const std::string& layer) {
  const auto transposed = [](const Tensor& array) { return array.t(); };
  const std::string suffix = layer.empty() ? "" : "_l" + layer;
  m("weight_ih" + suffix, w.ih, transposed)("weight_hh" + suffix, w.hh, transposed);
  m("bias_ih" + suffix, w.bias_ih)("bias_hh" + suffix, w.bias_hh);
}

Tensor affine(const Tensor& x, const Tensor& w, const Tensor& bias) {
  return bias.defined() ? matmul(x, w) + bias : matmul(x, w);
}

}  // namespace detail

}  // namespace rill::nn
