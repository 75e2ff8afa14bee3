#include <translator/data/encoded_pairs.h>

#include <numeric>

namespace translator {

EncodedPairs encode_pairs(std::span<const Pair> pairs, const Vocabulary& source, const Vocabulary& target) {
  EncodedPairs out;
  for (const Pair& pair : pairs) {
    out.sources.push_back(source.encode(pair.source));
    out.targets.push_back(target.encode(pair.target));
    out.lengths.push_back({std::ssize(out.sources.back()), std::ssize(out.targets.back())});
  }
  return out;
}

PairBatch pair_batch(const EncodedPairs& pairs, const rill::nn::BatchIndices& batch) {
  constexpr rill::nn::PadSequenceOptions padding{.padding_value = Vocabulary::pad};
  const auto [source, source_lengths] = rill::nn::pad_sequence(pairs.sources, batch, padding);
  const auto [target, target_lengths] = rill::nn::pad_sequence(pairs.targets, batch, padding);
  const auto lengths = target_lengths.span<std::int64_t>();
  return {.source = source,
          .source_lengths = source_lengths,
          .target_in = rill::nn::shift_tokens_right(target, Vocabulary::start),
          .target_out = target,
          .tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})};
}

}  // namespace translator
