#include <rill/nn/seq2seq/batching.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include <rill/core/autograd.h>
#include <rill/core/ops.h>

namespace rill::nn {
namespace {

using Sequence = std::span<const std::int64_t>;

PaddedSequences pad_ids(const std::vector<Sequence>& sequences, PadSequenceOptions options) {
  std::vector<std::int64_t> lengths;
  for (const Sequence& sequence : sequences) lengths.push_back(std::ssize(sequence));
  const std::int64_t batch = std::ssize(sequences);
  const std::int64_t steps = batch == 0 ? 0 : *std::max_element(lengths.begin(), lengths.end());
  const Shape shape = options.batch_first ? Shape{batch, steps} : Shape{steps, batch};
  Tensor ids = full(shape, options.padding_value, int64);
  std::int64_t* const to = ids.mutable_data<std::int64_t>();
  const std::int64_t row = options.batch_first ? steps : 1, step = options.batch_first ? 1 : batch;
  for (std::int64_t b = 0; b < batch; ++b) {
    const Sequence& sequence = sequences[static_cast<std::size_t>(b)];
    for (std::int64_t t = 0; t < std::ssize(sequence); ++t) {
      to[b * row + t * step] = sequence[static_cast<std::size_t>(t)];
    }
  }
  return {std::move(ids), tensor(lengths, {batch})};
}

void check_options(const BatchingOptions& o) {
  check(o.batch_size >= 1 && o.max_tokens >= 1 && o.bucket_batches >= 1,
        "batches: batch_size {}, max_tokens {} and bucket_batches {} must be at least 1", o.batch_size,
        o.max_tokens, o.bucket_batches);
}

void sort_by_length(std::span<std::int64_t> indices, std::span<const ExampleLengths> lengths) {
  const auto key = [&](std::int64_t index) {
    const ExampleLengths& l = lengths[static_cast<std::size_t>(index)];
    return std::pair(l.target, l.source);
  };
  std::stable_sort(indices.begin(), indices.end(),
                   [&](std::int64_t a, std::int64_t b) { return key(a) < key(b); });
}

/// Appends batches of the indices, in order.
void cut(std::span<const std::int64_t> indices, std::span<const ExampleLengths> lengths,
         const BatchingOptions& options, std::vector<BatchIndices>& batches) {
  const std::size_t first = batches.size();
  std::int64_t longest = 0;  // of the last batch
  for (const std::int64_t index : indices) {
    const auto [source, target] = lengths[static_cast<std::size_t>(index)];
    longest = std::max({longest, source, target});
    const std::int64_t size = batches.size() == first ? 0 : std::ssize(batches.back());
    if (size == 0 || size == options.batch_size || longest > options.max_tokens / (size + 1)) {
      batches.emplace_back();
      longest = std::max(source, target);
    }
    batches.back().push_back(index);
  }
}

std::vector<std::int64_t> all_indices(std::span<const ExampleLengths> lengths) {
  for (const ExampleLengths& l : lengths) {
    check(l.source >= 0 && l.target >= 0, "batches: lengths {} and {} must not be negative", l.source,
          l.target);
  }
  std::vector<std::int64_t> indices(lengths.size());
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return indices;
}

}  // namespace

PaddedSequences pad_sequence(const TokenSequences& sequences, PadSequenceOptions options) {
  return pad_ids({sequences.begin(), sequences.end()}, options);
}

PaddedSequences pad_sequence(const TokenSequences& sequences, const BatchIndices& batch,
                             PadSequenceOptions options) {
  std::vector<Sequence> chosen;
  for (const std::int64_t index : batch) {
    check(index >= 0 && index < std::ssize(sequences), "pad_sequence: index {} is outside 0..{}", index,
          std::ssize(sequences) - 1);
    chosen.emplace_back(sequences[static_cast<std::size_t>(index)]);
  }
  return pad_ids(chosen, options);
}

PaddedSequences pad_sequence(std::span<const Tensor> sequences, PadSequenceOptions options) {
  check(!sequences.empty(), "pad_sequence: there are no sequences; their shape would be unknown");
  std::vector<std::int64_t> lengths;
  const Tensor& first = sequences.front();
  for (const Tensor& sequence : sequences) {
    check(sequence.defined() && sequence.dim() >= 1, "pad_sequence: sequence {} has no dimension to pad",
          lengths.size());
    Shape wanted = first.shape();
    wanted[0] = sequence.size(0);
    check(sequence.shape() == wanted && sequence.dtype() == first.dtype(),
          "pad_sequence: sequence {} is {} {}, sequence 0 is {} {}; all but the length must be equal",
          lengths.size(), name(sequence.dtype()), sequence.shape(), name(first.dtype()), first.shape());
    lengths.push_back(sequence.size(0));
  }
  const NoGrad no_grad;
  const std::int64_t batch = std::ssize(sequences);
  Shape shape = first.shape();
  shape[0] = *std::max_element(lengths.begin(), lengths.end());
  shape.insert(options.batch_first ? 0 : 1, batch);
  Tensor values = full(shape, options.padding_value, first.dtype());
  for (std::int64_t b = 0; b < batch; ++b) {
    Tensor row = values.select(options.batch_first ? 0 : 1, b);
    row.narrow(0, 0, lengths[static_cast<std::size_t>(b)]).copy_(sequences[static_cast<std::size_t>(b)]);
  }
  return {std::move(values), tensor(lengths, {batch})};
}

Tensor shift_tokens_right(const Tensor& tokens, std::int64_t start) {
  check(tokens.dim() == 2 && tokens.dtype() == int64,
        "shift_tokens_right: the tokens are {} {}; pass int64 [steps, batch]", name(tokens.dtype()),
        tokens.shape());
  Tensor shifted = full(tokens.shape(), static_cast<double>(start), int64);
  const std::int64_t steps = tokens.size(0);
  if (steps > 0) shifted.narrow(0, 1, steps - 1).copy_(tokens.narrow(0, 0, steps - 1));
  return shifted;
}

std::vector<BatchIndices> sorted_batches(std::span<const ExampleLengths> lengths,
                                         const BatchingOptions& options) {
  check_options(options);
  std::vector<std::int64_t> indices = all_indices(lengths);
  sort_by_length(indices, lengths);
  std::vector<BatchIndices> batches;
  cut(indices, lengths, options, batches);
  return batches;
}

std::vector<BatchIndices> bucketed_batches(std::span<const ExampleLengths> lengths,
                                           const BatchingOptions& options, Rng& rng) {
  check_options(options);
  std::vector<std::int64_t> indices = all_indices(lengths);
  rng.shuffle(indices);
  const std::int64_t count = std::ssize(indices);
  const std::int64_t bucket = options.batch_size <= count / options.bucket_batches
                                  ? options.batch_size * options.bucket_batches
                                  : count;
  std::vector<BatchIndices> batches;
  for (std::int64_t begin = 0; begin < count; begin += bucket) {
    const auto part = std::span(indices).subspan(static_cast<std::size_t>(begin),
                                                 static_cast<std::size_t>(std::min(bucket, count - begin)));
    sort_by_length(part, lengths);
    cut(part, lengths, options, batches);
  }
  rng.shuffle(batches);
  return batches;
}

std::vector<BatchIndices> random_batches(std::int64_t count, std::int64_t batch_size, Rng& rng) {
  check(batch_size >= 1, "batches: batch_size {} must be at least 1", batch_size);
  const std::vector<std::int64_t> order = rng.permutation(count);
  std::vector<BatchIndices> batches;
  for (auto begin = order.begin(); begin != order.end();) {
    const auto end = begin + std::min<std::ptrdiff_t>(batch_size, order.end() - begin);
    batches.emplace_back(begin, end);
    begin = end;
  }
  return batches;
}

}  // namespace rill::nn
