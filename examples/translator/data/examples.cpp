#include <translator/data/examples.h>

#include <algorithm>

namespace translator {

Examples encode(std::span<const Pair> pairs, const Vocabulary& source, const Vocabulary& target) {
  Examples out;
  for (const Pair& pair : pairs) {
    out.sources.push_back(source.encode(pair.source));
    out.targets.push_back(target.encode(pair.target));
    out.lengths.push_back({out.sources.back().size(), out.targets.back().size()});
  }
  return out;
}

Padded pad(const std::vector<std::vector<std::int64_t>>& sentences, const Batch& batch) {
  std::size_t steps = 0;
  for (std::size_t i : batch) steps = std::max(steps, sentences[i].size());
  const auto size = static_cast<std::int64_t>(batch.size());
  Padded out{rill::full({static_cast<std::int64_t>(steps), size}, Vocabulary::pad, rill::int64),
             rill::empty({size}, rill::int64)};
  auto* ids = out.ids.mutable_data<std::int64_t>();
  auto* lengths = out.lengths.mutable_data<std::int64_t>();
  for (std::size_t b = 0; b < batch.size(); ++b) {
    const auto& sentence = sentences[batch[b]];
    lengths[b] = static_cast<std::int64_t>(sentence.size());
    for (std::size_t t = 0; t < sentence.size(); ++t) ids[t * batch.size() + b] = sentence[t];
  }
  return out;
}

TrainingBatch training_batch(const Examples& examples, const Batch& batch) {
  TrainingBatch out;
  out.source = pad(examples.sources, batch);
  const Padded target = pad(examples.targets, batch);
  out.target_out = target.ids;
  const std::int64_t steps = target.ids.size(0), size = target.ids.size(1);
  out.target_in = rill::full({steps, size}, Vocabulary::start, rill::int64);
  if (steps > 0) out.target_in.narrow(0, 1, steps - 1).copy_(target.ids.narrow(0, 0, steps - 1));
  for (const std::int64_t length : target.lengths.span<std::int64_t>()) out.tokens += length;
  return out;
}

}  // namespace translator
