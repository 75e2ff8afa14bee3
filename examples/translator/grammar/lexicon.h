/// The words of the embedded corpus: their spelling, and their meaning as far as the grammar needs it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace translator::grammar {

using Words = std::vector<std::string>;

enum class Gender : std::uint8_t { masculine, feminine };

/// "he" and "they" are the third persons. "You" is one man, addressed as tu.
enum class Person : std::uint8_t { i, you, he, we, they };

/// Person and gender that a verb or adjective agrees with.
struct Agreement {
  Person person = Person::he;
  Gender gender = Gender::masculine;

  bool plural() const { return person == Person::we || person == Person::they; }
  bool third() const { return person == Person::he || person == Person::they; }
};

/// The kinds a noun belongs to, as bits, so that nobody eats a car.
using Kinds = std::uint32_t;

namespace kind {
enum : Kinds {
  adult = 1U << 0,
  child = 1U << 1,
  grazer = 1U << 2,  // animals that eat plants,
  hunter = 1U << 3,  // and those that eat meat
  food = 1U << 4,
  fodder = 1U << 5,  // what grazers eat
  prey = 1U << 6,    // what hunters eat
  drink = 1U << 7,
  text = 1U << 8,
  lesson = 1U << 9,  // what is learned
  sound = 1U << 10,  // what is listened to
  thing = 1U << 11,
  clothes = 1U << 12,
  container = 1U << 13,
  opening = 1U << 14,  // doors and the like
  furniture = 1U << 15,
  vehicle = 1U << 16,
  plant = 1U << 17,
  home = 1U << 18,
  outdoors = 1U << 19,
  building = 1U << 20,
  water = 1U << 21,
  destination = 1U << 22,
  dwelling = 1U << 23,
  toy = 1U << 24,
  fragile = 1U << 25,
  mendable = 1U << 26,
  washable = 1U << 27,
  mass = 1U << 28,      // no plural: bread, milk
  single = 1U << 29,    // there is only one: the king
  relative = 1U << 30,  // somebody's mother, uncle …
  free = 1U << 31,      // has no owner: no my, no Paul's

  person = adult | child,
  animal = grazer | hunter,
  being = person | animal,
  place = home | outdoors | building | water,
};
}  // namespace kind

/// A noun; an empty plural is the regular one.
struct Noun {
  std::string_view english, english_plural, french, french_plural;
  Gender gender;
  Kinds kinds;
  std::string_view in_english = "in", in_french = "dans";  ///< preposition, if it is a place
};

/// A first name.
struct Name {
  std::string_view text;
  Gender gender;
};

/// An adjective.
struct Adjective {
  std::string_view english;
  std::string_view comparative;                  ///< "bigger"; empty: "more …"; "-": not compared
  std::string_view masculine, feminine;          ///< equal and with a space in it: invariable
  Kinds kinds;                                   ///< of the nouns it describes
  bool before = false;                           ///< precedes the French noun
  std::string_view masculine_before_vowel = {};  ///< "vieil"; empty: as masculine
};

/// The uses of a verb, as bits.
using Uses = std::uint32_t;

namespace use {
enum : Uses {
  lasting = 1U << 0,    // has progressive tenses: "is reading", "was reading"
  state = 1U << 1,      // a state: "knows"; present and future only
  with_etre = 1U << 2,  // its past takes être
  reflexive = 1U << 3,
  generic = 1U << 4,  // "likes apples": aime les pommes
  needs_place = 1U << 5,
  to_someone = 1U << 6,  // gives somebody something
  well = 1U << 7,        // the adverbs it takes
  quickly = 1U << 8,
  slowly = 1U << 9,
  a_lot = 1U << 10,
  acquires = 1U << 11,    // "buys a cake and …"
  disposes = 1U << 12,    // "… eats it"
  interrupts = 1U << 13,  // "was sleeping when the dog …"
  accident = 1U << 14,    // not done on purpose
};
}  // namespace use

/// A verb, its subjects, objects and prepositions.
struct Verb {
  std::string_view english;              ///< base form
  std::string_view past = {}, ing = {};  ///< other forms, if irregular
  std::string_view particle = {};        ///< the word after it: "up", "home"
  std::string_view french;               ///< infinitive, without "se"
  Kinds subjects;
  Kinds objects = 0;  ///< 0: takes none
  Uses uses = 0;
  Kinds places = 0;                          ///< where it may happen
  std::string_view preposition = {};         ///< before the object
  std::string_view french_preposition = {};  ///< in French; empty for a direct object
  std::string_view french_after = {};        ///< "besoin" in "avoir besoin de"
};

/// A fixed pair of phrases.
struct Idiom {
  std::string_view english, french;
};

inline bool has(const Verb& verb, Uses uses) { return (verb.uses & uses) != 0; }

std::span<const Noun> nouns();
std::span<const Name> names();
std::span<const Adjective> adjectives();
std::span<const Verb> verbs();
std::span<const Idiom> numbers();  ///< two to ten, twelve and twenty

}  // namespace translator::grammar
