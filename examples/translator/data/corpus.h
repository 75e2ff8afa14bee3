/// The embedded data: English sentences and their French translations, out of a grammar.
///
/// The grammar has what attention is for: adjectives that move behind the noun and agree with it, ne … pas
/// around the verb, pronouns that move before it, elision and contraction, one word for two and two for one,
/// questions, tenses. It translates deterministically: an English sentence has one French translation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <translator/data/pairs.h>

namespace translator {

/// `count` pairs, English first, all sources different and all targets different (so any division of them
/// shares neither), of 3 to 15 tokens a side; the same on every machine for the same count and seed, and
/// `corpus(n, s)` begins with `corpus(m, s)` for m < n. Throws rill::Error if the grammar does not hold so
/// many.
std::vector<Pair> corpus(std::size_t count, std::uint64_t seed);

/// The raw pairs as lines "source TAB target LF".
std::string to_tsv(const std::vector<Pair>& pairs);

}  // namespace translator
