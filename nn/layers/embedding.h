/// The lookup table that turns ids into vectors.
#pragma once

#include <cstdint>
#include <optional>

#include <rill/nn/module.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// Options of Embedding, with PyTorch's names.
struct EmbeddingOptions {
  std::int64_t num_embeddings = 0;  ///< V
  std::int64_t embedding_dim = 0;   ///< E
  std::optional<std::int64_t> padding_idx =
      std::nullopt;  ///< an id whose row starts as 0 and gets no gradient; negative: from the end
};

/// Rows of `weight` [num_embeddings, embedding_dim] for ids: int64 [..] → [.., embedding_dim]. Normal with
/// deviation 1.
class Embedding final : public Module {
 public:
  /// Throws unless both sizes are at least 1 and padding_idx lies within.
  Embedding(EmbeddingOptions options, Rng& rng);

  /// Throws "embedding: index …" for an id outside 0 … num_embeddings - 1.
  Tensor operator()(const Tensor& ids) const;

  const Tensor& weight() const noexcept { return weight_; }              ///< [V, E]
  const EmbeddingOptions& options() const noexcept { return options_; }  ///< as given
  void members(Members& m) override;

 private:
  EmbeddingOptions options_;
  Tensor weight_;
};

}  // namespace rill::nn

#pragma GCC visibility pop
