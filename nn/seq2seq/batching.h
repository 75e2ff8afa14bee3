/// Batching of sequences of different lengths: bucketing and padding.
///
///   const auto batches = nn::bucketed_batches(lengths, {.batch_size = 64}, rng);  // once per epoch
///   for (const nn::BatchIndices& batch : batches) {
///     const auto [source, source_lengths] = nn::pad_sequence(sources, batch);  // [S, B], [B]
///     …
///   }
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <rill/core/random.h>
#include <rill/core/tensor.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// Token ids of many sequences.
using TokenSequences = std::vector<std::vector<std::int64_t>>;
/// Indices of the examples of one batch.
using BatchIndices = std::vector<std::int64_t>;

/// Sequences stacked in a batch, padded at the end.
struct PaddedSequences {
  Tensor values;   ///< [T, B, …], or [B, T, …] with `batch_first`
  Tensor lengths;  ///< int64 [B]
};

/// Options of pad_sequence, with PyTorch's names.
struct PadSequenceOptions {
  bool batch_first = false;  ///< values are [B, T, …]
  double padding_value = 0;  ///< past the end of a sequence
};

/// Pads token ids to the longest sequence: int64 [T, B].
PaddedSequences pad_sequence(const TokenSequences& sequences, PadSequenceOptions options = {});
/// The same for the sequences `batch`, in that order; throws for an index out of range.
PaddedSequences pad_sequence(const TokenSequences& sequences, const BatchIndices& batch,
                             PadSequenceOptions options = {});
/// Pads tensors [length, …] of the same dtype whose other dimensions are equal: [T, B, …]; not
/// differentiable. Throws for an empty list and for tensors that do not match.
PaddedSequences pad_sequence(std::span<const Tensor> sequences, PadSequenceOptions options = {});

/// The decoder input for teacher forcing with targets `tokens`, int64 [T, B]: `start`, then all tokens but
/// the last step.
Tensor shift_tokens_right(const Tensor& tokens, std::int64_t start);

/// The lengths of an example; for single sequences the target is 0.
struct ExampleLengths {
  std::int64_t source = 0;  ///< tokens
  std::int64_t target = 0;  ///< tokens, or 0
};

/// Options of bucketed_batches.
struct BatchingOptions {
  std::int64_t batch_size = 64;  ///< maximum number of examples per batch
  /// Maximum number of tokens per batch on either side, including padding; a longer example forms a batch of
  /// its own.
  std::int64_t max_tokens = std::numeric_limits<std::int64_t>::max();
  std::int64_t bucket_batches = 100;  ///< number of batches whose examples are sorted by length together
};

/// All examples sorted by target length, source length and index, split into batches: minimal padding. Throws
/// unless all options are at least 1 and all lengths at least 0.
std::vector<BatchIndices> sorted_batches(std::span<const ExampleLengths> lengths,
                                         const BatchingOptions& options = {});

/// All examples in random order, grouped by similar length: they are shuffled, each bucket of batch_size ·
/// bucket_batches examples is sorted by length and split into batches, and the batches are shuffled. The same
/// state of `rng` gives the same batches. Throws like sorted_batches.
std::vector<BatchIndices> bucketed_batches(std::span<const ExampleLengths> lengths,
                                           const BatchingOptions& options, Rng& rng);

/// The examples 0 … count - 1 in random order, split into batches of `batch_size`; the last may be smaller.
/// Throws unless count >= 0 and batch_size >= 1.
std::vector<BatchIndices> random_batches(std::int64_t count, std::int64_t batch_size, Rng& rng);

}  // namespace rill::nn

#pragma GCC visibility pop
