/// A lookup table from ids to vectors.
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
      std::nullopt;  ///< id whose row is initialized to 0 and gets no gradient; negative: from the end
};

/// Looks up rows of `weight` [num_embeddings, embedding_dim]: ids int64 [..] → [.., embedding_dim]. The
/// weight is initialized from the standard normal distribution.
class Embedding final : public Module {
 public:
  /// Throws unless both sizes are at least 1 and padding_idx is in range.
  Embedding(EmbeddingOptions options, Rng& rng);

  /// Throws "embedding: index …" for an id outside 0 … num_embeddings - 1.
  Tensor operator()(const Tensor& ids) const;

  const Tensor& weight() const noexcept { return weight_; }              ///< [V, E]
  const EmbeddingOptions& options() const noexcept { return options_; }  ///< options
  void members(Members& m) override;

 private:
  EmbeddingOptions options_;
  Tensor weight_;
};

}  // namespace rill::nn

#pragma GCC visibility pop
