#include <rill/core/core.h>
#include <rill/nn/recurrent/recurrent.h>
#include <rill/nn/recurrent/unit.h>

#include <gradcheck/module_row.h>
#include <gradcheck/rows.h>

namespace test {

using rill::Tensor;
using Inputs = std::vector<Tensor>;
namespace nn = rill::nn;

namespace {

Inputs results(const nn::RecurrentOutput& out) {
  return out.last.c.defined() ? Inputs{out.output, out.last.h, out.last.c} : Inputs{out.output, out.last.h};
}

/// recurrent_sequence as a function of x, the state and the weights of each direction.
GradcheckRow sequence_row(nn::Cell cell, const rill::Shape& x, std::int64_t directions,
                          const Tensor& lengths) {
  const nn::detail::Unit& unit = nn::detail::unit_of(cell);
  const std::int64_t hidden = 2, width = unit.gates * hidden;
  std::uint64_t seed = 900;
  const rill::Shape states{directions, x[1], hidden};
  const auto next = [&](const rill::Shape& shape, bool wanted = true) {
    return wanted ? input(shape, seed++) : Tensor();
  };
  Inputs in{next(x), next(states), next(states, unit.states == 2)};
  for (std::int64_t d = 0; d < directions; ++d) {
    in.push_back(next({x[2], width}));
    in.push_back(next({hidden, width}));
    in.push_back(next({width}));
    in.push_back(next({width}, unit.biases == 2));
    in.push_back(next({hidden, hidden}, unit.has_inner()));
  }
  const auto f = [cell, lengths](const Inputs& given) {
    std::vector<nn::RecurrentWeights> w;
    for (std::size_t i = 3; i < given.size(); i += 5)
      w.push_back({given[i], given[i + 1], given[i + 2], given[i + 3], given[i + 4]});
    return results(
        nn::recurrent_sequence(cell, given[0], w, {.state = {given[1], given[2]}, .lengths = lengths}));
  };
  return {unit.name, f, in};
}

const Tensor& two_lengths() {
  static const Tensor lengths = rill::tensor<std::int64_t>({2, 3});
  return lengths;
}

constexpr nn::RecurrentLayersOptions deep{
    .input_size = 2, .hidden_size = 2, .num_layers = 2, .batch_first = true, .bidirectional = true};

/// Layers whose only state is h.
template <class Layers>
GradcheckRow layers_row(const char* name) {
  const auto call = [](const Layers& m, const Inputs& in) {
    const nn::SequenceOutput out = m(in[0], {.h0 = in[1], .lengths = two_lengths()});
    return Inputs{out.output, out.h_n};
  };
  return module_row<Layers>(name, deep, call, {input({2, 3, 2}, 972), input({4, 2, 2}, 973)});
}

template <class Cell>
GradcheckRow cell_row(const char* name) {
  return module_row<Cell>(name, {.input_size = 3, .hidden_size = 2},
                          [](const Cell& m, const Inputs& in) { return Inputs{m(in[0], in[1])}; },
                          {input({2, 3}, 970), input({2, 2}, 971)});
}

}  // namespace

std::vector<GradcheckRow> rows_recurrent() {
  std::vector<GradcheckRow> rows;
  for (const nn::Cell cell : nn::cells) {
    rows.push_back(sequence_row(cell, {1, 2, 3}, 1, Tensor()));
    rows.push_back(sequence_row(cell, {3, 2, 3}, 2, Tensor()));
    rows.push_back(sequence_row(cell, {4, 3, 2}, 2, rill::tensor<std::int64_t>({2, 4, 1})));
  }
  rows.push_back(cell_row<nn::GRUCell>("GRUCell"));
  rows.push_back(cell_row<nn::RAUCell>("RAUCell"));
  rows.push_back(module_row<nn::LSTMCell>("LSTMCell", {.input_size = 3, .hidden_size = 2},
                                          [](const nn::LSTMCell& m, const Inputs& in) {
                                            const auto [h, c] = m(in[0], {in[1], in[2]});
                                            return Inputs{h, c};
                                          },
                                          {input({2, 3}, 970), input({2, 2}, 971), input({2, 2}, 975)}));
  rows.push_back(layers_row<nn::GRU>("GRU"));
  rows.push_back(
      module_row<nn::LSTM>("LSTM", deep,
                           [](const nn::LSTM& m, const Inputs& in) {
                             return results(m(in[0], {.state = {in[1], in[2]}, .lengths = two_lengths()}));
                           },
                           {input({2, 3, 2}, 972), input({4, 2, 2}, 973), input({4, 2, 2}, 976)}));
  rows.push_back(layers_row<nn::RAU>("RAU"));
  rows.push_back(module_row<nn::Recurrent>(
      "Recurrent", {.cell = nn::Cell::rau, .layers = deep},
      [](const nn::Recurrent& m, const Inputs& in) { return results(m(in[0])); }, {input({2, 3, 2}, 974)}));
  return rows;
}

}  // namespace test
