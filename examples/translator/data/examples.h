/// Sentence pairs as numbers, and batches of them as tensors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <rill/core/tensor.h>
#include <translator/data/batches.h>
#include <translator/data/pairs.h>
#include <translator/text/vocabulary.h>

namespace translator {

/// The ids of many pairs, each sentence with its end.
struct Examples {
  std::vector<std::vector<std::int64_t>> sources;
  std::vector<std::vector<std::int64_t>> targets;
  std::vector<PairLength> lengths;

  std::size_t size() const noexcept { return sources.size(); }
};

Examples encode(std::span<const Pair> pairs, const Vocabulary& source, const Vocabulary& target);

/// Sentences of a batch side by side, the shorter ones padded.
struct Padded {
  rill::Tensor ids;      ///< int64 [steps, batch]
  rill::Tensor lengths;  ///< int64 [batch]
};
Padded pad(const std::vector<std::vector<std::int64_t>>& sentences, const Batch& batch);

/// A batch under teacher forcing: the decoder reads `target_in` and is to write `target_out`.
struct TrainingBatch {
  Padded source;
  rill::Tensor target_in;   ///< [steps, batch], the start, then the sentence
  rill::Tensor target_out;  ///< [steps, batch], the sentence, then its end
  std::int64_t tokens = 0;  ///< real tokens of target_out
};
TrainingBatch training_batch(const Examples& examples, const Batch& batch);

}  // namespace translator
