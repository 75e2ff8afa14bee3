/// Which sentences go together into a batch.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <rill/core/random.h>

namespace translator {

/// Positions of the sentences of one batch.
using Batch = std::vector<std::size_t>;

/// The lengths of a pair, by which it is grouped.
struct PairLength {
  std::size_t source = 0;
  std::size_t target = 0;
};

/// All positions in order of length (target first, then source), cut into batches of `size`, the last one
/// shorter. Throws rill::Error if size is 0.
std::vector<Batch> batches(std::span<const PairLength> lengths, std::size_t size);

/// All positions at random, but sentences of like length together: the positions are shuffled, each 100
/// batches of them ordered by length and cut, and the batches shuffled. The same rng state gives the same
/// batches. Throws rill::Error if size is 0.
std::vector<Batch> shuffled_batches(std::span<const PairLength> lengths, std::size_t size, rill::Rng& rng);

}  // namespace translator
