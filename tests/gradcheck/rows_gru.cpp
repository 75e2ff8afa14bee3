#include <rill/core/core.h>
#include <rill/nn/recurrent/gru.h>

#include <gradcheck/rows.h>

namespace test {

using rill::Tensor;
using Inputs = std::vector<Tensor>;

namespace {

/// x, h0 and the weights of each direction as inputs of gru_sequence.
GradcheckRow sequence_row(const rill::Shape& x, std::int64_t directions, std::int64_t hidden,
                          const Tensor& lengths) {
  std::uint64_t seed = 900;
  Inputs in{input(x, seed++), input({directions, x[1], hidden}, seed++)};
  for (std::int64_t d = 0; d < directions; ++d) {
    in.push_back(input({x[2], 3 * hidden}, seed++));
    in.push_back(input({hidden, 3 * hidden}, seed++));
    in.push_back(input({3 * hidden}, seed++));
    in.push_back(input({3 * hidden}, seed++));
  }
  const auto f = [lengths](const Inputs& given) {
    std::vector<rill::nn::GruWeights> w;
    for (std::size_t i = 2; i < given.size(); i += 4)
      w.push_back({given[i], given[i + 1], given[i + 2], given[i + 3]});
    const auto out = rill::nn::gru_sequence(given[0], w, {.h0 = given[1], .lengths = lengths});
    return Inputs{out.output, out.h_n};
  };
  return {"gru", f, in};
}

}  // namespace

std::vector<GradcheckRow> rows_gru() {
  return {sequence_row({1, 2, 3}, 1, 2, Tensor()), sequence_row({3, 2, 3}, 2, 2, Tensor()),
          sequence_row({4, 3, 2}, 2, 2, rill::tensor<std::int64_t>({2, 4, 1}))};
}

}  // namespace test
