#include <rill/core/core.h>
#include <rill/nn/recurrent/rau.h>

#include <gradcheck/module_row.h>
#include <gradcheck/rows.h>

namespace test {

using rill::Tensor;
using Inputs = std::vector<Tensor>;
namespace nn = rill::nn;

namespace {

/// x, h0 and the weights of each direction as inputs of rau_sequence.
GradcheckRow sequence_row(const rill::Shape& x, std::int64_t directions, std::int64_t hidden,
                          const Tensor& lengths) {
  std::uint64_t seed = 950;
  Inputs in{input(x, seed++), input({directions, x[1], hidden}, seed++)};
  for (std::int64_t d = 0; d < directions; ++d) {
    in.push_back(input({x[2], 4 * hidden}, seed++));
    in.push_back(input({hidden, 4 * hidden}, seed++));
    in.push_back(input({hidden, hidden}, seed++));
    in.push_back(input({4 * hidden}, seed++));
  }
  const auto f = [lengths](const Inputs& given) {
    std::vector<nn::RauWeights> w;
    for (std::size_t i = 2; i < given.size(); i += 4)
      w.push_back({given[i], given[i + 1], given[i + 2], given[i + 3]});
    const auto out = nn::rau_sequence(given[0], w, {.h0 = given[1], .lengths = lengths});
    return Inputs{out.output, out.h_n};
  };
  return {"rau", f, in};
}

}  // namespace

std::vector<GradcheckRow> rows_rau() {
  const Tensor lengths = rill::tensor<std::int64_t>({2, 3});
  std::vector<GradcheckRow> rows{sequence_row({1, 2, 3}, 1, 2, Tensor()),
                                 sequence_row({3, 2, 3}, 2, 2, Tensor()),
                                 sequence_row({4, 3, 2}, 2, 2, rill::tensor<std::int64_t>({2, 4, 1}))};
  rows.push_back(
      module_row<nn::RAUCell>("RAUCell", {.input_size = 3, .hidden_size = 2},
                              [](const nn::RAUCell& m, const Inputs& in) { return Inputs{m(in[0], in[1])}; },
                              {input({2, 3}, 970), input({2, 2}, 971)}));
  rows.push_back(module_row<nn::RAU>(
      "RAU", {.input_size = 2, .hidden_size = 2, .num_layers = 2, .batch_first = true, .bidirectional = true},
      [lengths](const nn::RAU& m, const Inputs& in) {
        const auto out = m(in[0], {.h0 = in[1], .lengths = lengths});
        return Inputs{out.output, out.h_n};
      },
      {input({2, 3, 2}, 972), input({4, 2, 2}, 973)}));
  return rows;
}

}  // namespace test
