/// Sequences of different lengths as batches: which ones go together, and padding.
///
///   const auto batches = nn::bucketed_batches(lengths, {.batch_size = 64}, rng);  // each epoch anew
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

/// Sequences side by side, the shorter ones padded at their end.
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
/// Pads tensors [length, …] of one dtype whose other dimensions are equal: [T, B, …]; not differentiable.
/// Throws if there is none, and for tensors that do not fit each other.
PaddedSequences pad_sequence(std::span<const Tensor> sequences, PadSequenceOptions options = {});

/// The input of a decoder under teacher forcing whose targets are `tokens`, int64 [T, B]: `start`, then the
/// tokens but for the last step.
Tensor shift_tokens_right(const Tensor& tokens, std::int64_t start);

/// The lengths of an example; a single sequence has no target.
struct ExampleLengths {
  std::int64_t source = 0;  ///< tokens
  std::int64_t target = 0;  ///< tokens, or 0
};

/// Options of bucketed_batches.
struct BatchingOptions {
  std::int64_t batch_size = 64;  ///< most examples per batch
  /// Most tokens per batch on either side, padding included; an example longer than that is a batch by
  /// itself.
  std::int64_t max_tokens = std::numeric_limits<std::int64_t>::max();
  std::int64_t bucket_batches = 100;  ///< batches whose examples are ordered by length together
};

/// All examples in order of target, then source length, then index, cut into batches: the least padding.
/// Throws unless all options are at least 1 and all lengths at least 0.
std::vector<BatchIndices> sorted_batches(std::span<const ExampleLengths> lengths,
                                         const BatchingOptions& options = {});

/// All examples in random order, but those of similar length together: they are shuffled, each bucket of
/// batch_size · bucket_batches is ordered by length and cut, and the batches are shuffled. The same state of
/// `rng` gives the same batches. Throws as sorted_batches.
std::vector<BatchIndices> bucketed_batches(std::span<const ExampleLengths> lengths,
                                           const BatchingOptions& options, Rng& rng);

/// The examples 0 … count - 1 in random order, cut into batches of `batch_size`, the last one shorter. Throws
/// unless count >= 0 and batch_size >= 1.
std::vector<BatchIndices> random_batches(std::int64_t count, std::int64_t batch_size, Rng& rng);

}  // namespace rill::nn

#pragma GCC visibility pop
