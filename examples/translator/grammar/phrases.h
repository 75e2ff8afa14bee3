/// Noun phrases in both languages at once.
#pragma once

#include <rill/core/random.h>

#include <translator/grammar/lexicon.h>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace translator::grammar {

/// A noun phrase in both languages, with its person and gender.
struct Phrase {
  Words english;
  Words french;
  Agreement agreement = {};
  const Noun* noun = nullptr;  ///< null for pronouns and names

  /// "every child", "all the children": not negated, since that would be ambiguous.
  bool counts_all() const {
    return !english.empty() && (english.front() == "every" || english.front() == "all");
  }
};

/// Appends the words of a text separated by spaces.
void append(Words& words, std::string_view text);
void append(Words& words, const Words& more);

/// Restrictions on noun phrases.
struct PhraseStyle {
  bool negated = false;   ///< after "not": "a" and "any" are "de" in French
  bool generic = false;   ///< in general: "apples", "les pommes"
  bool definite = false;  ///< the, my, this
  bool single = false;    ///< not the plural
  bool plain = false;     ///< neither adjectives nor an owner
  const Noun* other_than = nullptr;
};

/// Draws phrases at random.
class Phrases {
 public:
  explicit Phrases(rill::Rng& rng) : rng_(rng) {}

  /// A pronoun, name or noun phrase as a subject.
  Phrase subject(Kinds kinds, const PhraseStyle& style = {});

  /// A noun phrase, or a name if people are among the kinds.
  Phrase object(Kinds kinds, const PhraseStyle& style);

  /// A noun phrase without determiner and adjectives, as in "how many apples".
  Phrase bare(Kinds kinds, bool plural);

  /// A preposition and a place: "in the garden", "near the station".
  Phrase place(Kinds kinds);

  /// The location of a thing: "in the box", "under the bed".
  Phrase location();

  /// A personal pronoun as a subject; "it" and "they" for things.
  static Phrase pronoun(Agreement agreement, bool person = true);

  const Noun& noun(Kinds kinds, const Noun* other_than = nullptr);
  const Adjective& adjective(Kinds kinds);

  bool chance(double probability) { return rng_.bernoulli(probability); }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(rng_.below(n)); }

  template <class Range>
  const auto& pick(const Range& all) {
    return all[below(std::size(all))];
  }

 private:
  enum class Determiner {
    the,
    a,
    some,
    this_one,
    possessive,
    number,
    several,
    many,
    few,
    all,
    every,
    generic,
    owner
  };

  Determiner determiner(const Noun& noun, bool plural, const PhraseStyle& style);
  Determiner unusual_determiner(const Noun& noun, bool plural, std::size_t draw, const PhraseStyle& style);
  Determiner indefinite(bool plural, bool mass, const PhraseStyle& style);
  void determine(Phrase& phrase, Determiner determiner, bool plural, bool adjective_first, bool negated);
  void possess(Phrase& phrase, bool plural);
  void own(Phrase& phrase, const Noun& owned);
  Phrase name();

  rill::Rng& rng_;
};

}  // namespace translator::grammar
