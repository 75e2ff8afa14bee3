#include <rill/core/core.h>
#include <rill/nn/seq2seq/bahdanau.h>

#include <gradcheck/module_row.h>
#include <gradcheck/rows.h>

namespace test {

using rill::Tensor;
using Inputs = std::vector<Tensor>;
namespace nn = rill::nn;

std::vector<GradcheckRow> rows_bahdanau() {
  const Tensor lengths = rill::tensor<std::int64_t>({2, 4, 1}),
               words = rill::tensor<std::int64_t>({1, 2, 0, 3, 1, 1}, {2, 3});
  return {module_row<nn::BahdanauAttention>("BahdanauAttention", {.state = 2, .annotation = 4, .align = 3},
                                            [lengths](const nn::BahdanauAttention& m, const Inputs& in) {
                                              const auto [weights, context] = m(in[0], in[1], lengths);
                                              return Inputs{weights, context};
                                            },
                                            {input({3, 2}, 980), input({4, 3, 4}, 981)}),
          module_row<nn::BahdanauDecoder>("BahdanauDecoder", {.vocab = 4, .m = 2, .n = 2, .l = 3, .align = 2},
                                          [lengths, words](const nn::BahdanauDecoder& m, const Inputs& in) {
                                            const auto [log_probs, weights, s] = m(words, in[0], lengths);
                                            return Inputs{log_probs, weights, s};
                                          },
                                          {input({4, 3, 4}, 982)})};
}

}  // namespace test
