#include <rill/nn/layers/dropout.h>
#include <rill/nn/layers/embedding.h>
#include <rill/nn/layers/layer_norm.h>
#include <rill/nn/layers/linear.h>

#include <gradcheck/module_row.h>
#include <gradcheck/rows.h>

namespace test {

using rill::Tensor;
using Inputs = std::vector<Tensor>;
namespace nn = rill::nn;

std::vector<GradcheckRow> rows_layers() {
  const auto apply = [](const auto& m, const Inputs& in) { return Inputs{m(in[0])}; };
  const Tensor ids = rill::tensor<std::int64_t>({1, 3, 1, 0}, {2, 2});
  std::vector<GradcheckRow> rows;
  rows.push_back(module_row<nn::Linear>("Linear", {.in_features = 3, .out_features = 4}, apply,
                                        {input({2, 2, 3}, 701)}));
  rows.push_back(
      module_row<nn::Embedding>("Embedding", {.num_embeddings = 4, .embedding_dim = 3}, apply, {ids}));
  rows.push_back(
      module_row<nn::LayerNorm>("LayerNorm", {.normalized_shape = {2, 3}}, apply, {input({3, 2, 3}, 702)}));
  rows.push_back({"Dropout",
                  [](const Inputs& in) {
                    rill::Rng rng(705);  // the same mask in each call
                    return Inputs{nn::Dropout({.p = 0.4}, rng)(in[0])};
                  },
                  {input({3, 4}, 706)}});
  return rows;
}

}  // namespace test
