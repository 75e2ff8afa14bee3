#include <rill/nn/layers/embedding.h>

#include <rill/nn/init.h>

namespace rill::nn {

Embedding::Embedding(EmbeddingOptions options, Rng& rng) : options_(options) {
  const std::int64_t n = options.num_embeddings;
  check(n >= 1 && options.embedding_dim >= 1,
        "Embedding: num_embeddings {} and embedding_dim {} must be at least 1", n, options.embedding_dim);
  weight_ = init::normal_(empty({n, options.embedding_dim}), 0, 1, rng);
  if (options_.padding_idx) {
    std::int64_t& row = *options_.padding_idx;
    check(-n <= row && row < n, "Embedding: padding_idx {} is outside 0..{}", row, n - 1);
    if (row < 0) row += n;
    init::zeros_(weight_.select(0, row));
  }
  weight_.set_requires_grad();
}

Tensor Embedding::operator()(const Tensor& ids) const {
  detail::check_not_moved_from("embedding", weight_.defined());
  return embedding(weight_, ids, options_.padding_idx);
}

void Embedding::members(Members& m) { m("weight", weight_); }

}  // namespace rill::nn
