/// The division of sentence pairs into training and validation.
#pragma once

#include <rill/core/random.h>

#include <translator/data/pairs.h>
#include <cstddef>
#include <string>
#include <vector>

namespace translator {

/// How much to hold out for validation.
struct HoldOutOptions {
  double share = 0.05;           ///< Of the distinct sources, at least one,
  std::size_t most = 1000;       ///< and at most so many;
  std::size_t least_pairs = 20;  ///< none if there are fewer pairs.
};

/// Training and validation pairs, each in their old order, and a sentence that says what was done.
struct Split {
  std::vector<Pair> train;
  std::vector<Pair> valid;
  std::string note;
};

/// Holds out a random part of the pairs such that no source and no target occurs on both sides (tokens
/// compared).
Split hold_out(std::vector<Pair> pairs, rill::Rng& rng, const HoldOutOptions& options = {});

/// How many of `pairs` have a source that is among the sources of `others` (tokens compared).
std::size_t count_known_sources(const std::vector<Pair>& pairs, const std::vector<Pair>& others);

}  // namespace translator
