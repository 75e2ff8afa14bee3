/// Sentence pairs as token ids, and batches of them as tensors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <rill/nn/seq2seq/batching.h>
#include <translator/data/pairs.h>
#include <translator/text/vocabulary.h>

namespace translator {

/// The ids of many pairs, each sentence with its end.
struct EncodedPairs {
  rill::nn::TokenSequences sources;
  rill::nn::TokenSequences targets;
  std::vector<rill::nn::ExampleLengths> lengths;

  std::size_t size() const noexcept { return sources.size(); }
};

EncodedPairs encode_pairs(std::span<const Pair> pairs, const Vocabulary& source, const Vocabulary& target);

/// A batch for teacher forcing: the decoder reads `target_in` and is trained to emit `target_out`.
struct PairBatch {
  rill::Tensor source;          ///< [S, B]
  rill::Tensor source_lengths;  ///< [B]
  rill::Tensor target_in;       ///< [T, B], the start, then the sentence
  rill::Tensor target_out;      ///< [T, B], the sentence, then its end
  std::int64_t tokens = 0;      ///< tokens of target_out without padding
};
PairBatch pair_batch(const EncodedPairs& pairs, const rill::nn::BatchIndices& batch);

}  // namespace translator
