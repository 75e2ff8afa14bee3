/// Splitting sentence pairs into training and validation.
#pragma once

#include <rill/core/random.h>

#include <translator/data/pairs.h>
#include <cstddef>
#include <string>
#include <vector>

namespace translator {

struct HoldOutOptions {
  double fraction = 0.05;      ///< of the distinct sources to hold out, at least one
  std::size_t most = 1000;     ///< maximum number of sources to hold out
  std::size_t min_pairs = 20;  ///< none are held out from fewer pairs
};

/// Training and validation pairs, both in their original order, and a note for the user.
struct Split {
  std::vector<Pair> train;
  std::vector<Pair> valid;
  std::string note;
};

/// Holds out random pairs so that no source and no target, compared by tokens, is in both parts.
Split hold_out(std::vector<Pair> pairs, rill::Rng& rng, const HoldOutOptions& options = {});

/// The number of `pairs` whose source, compared by tokens, is a source of `others` too.
std::size_t count_known_sources(const std::vector<Pair>& pairs, const std::vector<Pair>& others);

}  // namespace translator
