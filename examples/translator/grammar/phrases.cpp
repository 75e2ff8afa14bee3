#include <translator/grammar/phrases.h>

#include <algorithm>
#include <array>
#include <iterator>

#include <rill/core/error.h>
#include <translator/grammar/english.h>
#include <translator/grammar/french.h>

namespace translator::grammar {
namespace {

/// The form for a gender and number.
std::string_view agreeing_form(Gender gender, bool plural, std::string_view masculine,
                               std::string_view feminine, std::string_view plural_form) {
  return plural ? plural_form : gender == Gender::feminine ? feminine : masculine;
}

std::string_view article(Gender gender, bool plural) {
  return agreeing_form(gender, plural, "=le", "=la", "=les");
}

void prepend(Words& words, std::string_view text) {
  Words first;
  append(first, text);
  words.insert(words.begin(), first.begin(), first.end());
}

/// "near the station": a building as a landmark.
constexpr Idiom landmarks[] = {
    {"near", "près de"}, {"behind", "derrière"}, {"in front of", "devant"}, {"next to", "à côté de"}};

}  // namespace

void append(Words& words, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void append(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

const Noun& Phrases::noun(Kinds kinds, const Noun* other_than) {
  // Mass is not a kind by itself: bread is food.
  std::array<const Noun*, 256> found{};
  std::size_t n = 0;
  for (const Noun& noun : nouns()) {
    if ((noun.kinds & kinds) != 0 && &noun != other_than) {
      found.at(n++) = &noun;
    }
  }
  rill::check(n > 0, "corpus: no noun is of the kinds {:x}", kinds);
  return *found[below(n)];
}

const Adjective& Phrases::adjective(Kinds kinds) {
  std::array<const Adjective*, 256> found{};
  std::size_t n = 0;
  for (const Adjective& adjective : adjectives()) {
    if ((adjective.kinds & kinds) != 0) {
      found.at(n++) = &adjective;
    }
  }
  rill::check(n > 0, "corpus: no adjective is said of the kinds {:x}", kinds);
  return *found[below(n)];
}

Phrase Phrases::pronoun(Agreement agreement, bool person) {
  static constexpr std::array<Idiom, 5> masculine = {
      {{"I", "je"}, {"you", "tu"}, {"he", "il"}, {"we", "nous"}, {"they", "ils"}}};
  static constexpr Idiom she = {"she", "elle"};
  static constexpr Idiom they = {"they", "elles"};
  Idiom words = masculine[static_cast<std::size_t>(agreement.person)];
  if (agreement.gender == Gender::feminine && agreement.third()) {
    words = agreement.plural() ? they : she;
  }
  const bool it = !person && !agreement.plural();
  return {{it ? "it" : std::string(words.english)}, {std::string(words.french)}, agreement};
}

Phrase Phrases::name() {
  const Name& name = pick(names());
  return {{std::string(name.text)}, {std::string(name.text)}, {Person::he, name.gender}};
}

Phrase Phrases::subject(Kinds kinds, const PhraseStyle& style) {
  const std::size_t draw = below(100);
  if ((kinds & kind::person) != 0 && draw < 24) {
    static constexpr std::array<Agreement, 8> pronouns = {{{Person::i},
                                                           {Person::i},
                                                           {Person::you},
                                                           {Person::we},
                                                           {Person::he},
                                                           {Person::he, Gender::feminine},
                                                           {Person::he, Gender::feminine},
                                                           {Person::they}}};
    return pronoun(pick(pronouns));
  }
  if ((kinds & kind::person) != 0 && draw < 34) {
    return name();
  }
  return object(kinds, style);
}

Phrase Phrases::object(Kinds kinds, const PhraseStyle& style) {
  if ((kinds & kind::person) != 0 && !style.plain && below(100) < 8) {
    return name();
  }
  const Noun& noun = this->noun(kinds, style.other_than);
  const bool mass = (noun.kinds & kind::mass) != 0;
  const bool plural =
      !mass && !style.single && (noun.kinds & kind::single) == 0 && (style.generic || chance(0.3));
  const Determiner chosen = determiner(noun, plural, style);
  const bool singular = !plural || chosen == Determiner::every;

  Phrase phrase{{}, {}, {singular ? Person::he : Person::they, noun.gender}, &noun};
  const Adjective* first = nullptr;
  const Adjective* second = nullptr;
  if (!style.plain && !style.generic && chance(0.35)) {
    const Adjective& one = adjective(noun.kinds);
    (one.before ? first : second) = &one;
    if (const Adjective& two = adjective(noun.kinds); chance(0.15) && two.before != one.before) {
      (two.before ? first : second) = &two;
    }
  }
  const std::string noun_french = french::noun(noun, !singular);
  if (first != nullptr) {
    append(phrase.english, first->english);
    append(phrase.french, french::adjective(*first, noun.gender, !singular, noun_french));
  }
  append(phrase.french, noun_french);
  if (second != nullptr) {
    append(phrase.english, second->english);
    append(phrase.french, french::adjective(*second, noun.gender, !singular));
  }
  append(phrase.english, english::noun(noun, !singular));
  determine(phrase, chosen, !singular, first != nullptr, style.negated);
  return phrase;
}

Phrase Phrases::bare(Kinds kinds, bool plural) {
  const Noun* noun = &this->noun(kinds);
  while ((noun->kinds & (kind::mass | kind::single | kind::relative)) != 0) {
    noun = &this->noun(kinds);
  }
  Phrase phrase{{}, {}, {plural ? Person::they : Person::he, noun->gender}, noun};
  append(phrase.english, english::noun(*noun, plural));
  append(phrase.french, french::noun(*noun, plural));
  return phrase;
}

Phrases::Determiner Phrases::determiner(const Noun& noun, bool plural, const PhraseStyle& style) {
  const bool mass = (noun.kinds & kind::mass) != 0;
  const std::size_t draw = below(100);
  if (style.generic) {
    return draw < 85 ? Determiner::generic : draw < 93 ? Determiner::possessive : Determiner::this_one;
  }
  if ((noun.kinds & (kind::free | kind::single | kind::relative)) != 0) {
    return unusual_determiner(noun, plural, draw, style);
  }
  if (draw < 36) {
    return Determiner::the;
  }
  if (draw < 54) {
    return mass && !style.definite ? Determiner::some : Determiner::possessive;
  }
  if (draw < 60) {
    return Determiner::this_one;
  }
  if (draw < 66 && !style.plain) {
    return Determiner::owner;
  }
  return style.definite ? Determiner::the : indefinite(plural, mass, style);
}

/// Relatives have an owner, other nouns cannot have one, and of some there is only one.
Phrases::Determiner Phrases::unusual_determiner(const Noun& noun, bool plural, std::size_t draw,
                                                const PhraseStyle& style) {
  if ((noun.kinds & kind::relative) != 0) {
    return draw < 65 || style.plain ? Determiner::possessive
           : draw < 85              ? Determiner::owner
                                    : Determiner::the;
  }
  if ((noun.kinds & kind::single) != 0 || style.definite) {
    return draw < 90 || (noun.kinds & kind::single) != 0 ? Determiner::the : Determiner::this_one;
  }
  return draw < 55 ? Determiner::the : draw < 65 ? Determiner::this_one : indefinite(plural, false, style);
}

Phrases::Determiner Phrases::indefinite(bool plural, bool mass, const PhraseStyle& style) {
  if (plural && !style.negated) {
    static constexpr std::array kinds = {Determiner::some,   Determiner::some,    Determiner::number,
                                         Determiner::number, Determiner::several, Determiner::many,
                                         Determiner::few,    Determiner::all};
    return pick(kinds);
  }
  if (plural || mass) {
    return Determiner::some;
  }
  return style.negated || chance(0.92) ? Determiner::a : Determiner::every;
}

void Phrases::determine(Phrase& phrase, Determiner determiner, bool plural, bool adjective_first,
                        bool negated) {
  const Gender gender = phrase.agreement.gender;
  const std::string the(article(gender, plural));
  const auto set = [&](std::string_view english, std::string_view french) {
    prepend(phrase.english, english);
    prepend(phrase.french, french);
  };
  switch (determiner) {
    case Determiner::the:
      return set("the", the);
    case Determiner::generic:
      return set("", the);
    case Determiner::a:
      return set("a", negated ? "de" : agreeing_form(gender, false, "un", "une", ""));
    case Determiner::some: {
      const bool partitive = !plural && !negated;  // de la soupe
      const std::string_view de = negated || adjective_first ? "de" : "des";
      return set(negated ? "any" : "some", partitive ? "de " + the : std::string(de));
    }
    case Determiner::this_one: {
      const bool vowel = french::begins_with_vowel(phrase.french.front());
      return set(plural ? "these" : "this",
                 agreeing_form(gender, plural, vowel ? "cet" : "ce", "cette", "ces"));
    }
    case Determiner::number: {
      const Idiom& number = pick(numbers());
      return set(number.english, number.french);
    }
    case Determiner::several:
      return set("several", "plusieurs");
    case Determiner::many:
      return set("many", "beaucoup de");
    case Determiner::few:
      return set("a few", "quelques");
    case Determiner::all:
      return set("all the", agreeing_form(gender, false, "tous =les", "toutes =les", ""));
    case Determiner::every:
      return set("every", "chaque");
    case Determiner::possessive:
      return possess(phrase, plural);
    case Determiner::owner:
      set("", the);
      return own(phrase, *phrase.noun);
  }
}

void Phrases::possess(Phrase& phrase, bool plural) {
  struct Owner {
    std::string_view english, masculine, feminine, plural;
  };
  static constexpr std::array<Owner, 6> owners = {{{"my", "mon", "ma", "mes"},
                                                   {"your", "ton", "ta", "tes"},
                                                   {"his", "son", "sa", "ses"},
                                                   {"her", "son", "sa", "ses"},
                                                   {"our", "notre", "notre", "nos"},
                                                   {"their", "leur", "leur", "leurs"}}};
  const Owner& owner = pick(owners);
  prepend(phrase.english, owner.english);
  // Before a vowel the feminine takes the masculine form: mon étagère.
  const bool vowel = french::begins_with_vowel(phrase.french.front());
  prepend(phrase.french, agreeing_form(phrase.agreement.gender, plural, owner.masculine,
                                       vowel ? owner.masculine : owner.feminine, owner.plural));
}

/// "the teacher's dog": the owner comes first in English, last in French.
void Phrases::own(Phrase& phrase, const Noun& owned) {
  Phrase owner =
      chance(0.4)
          ? name()
          : object(kind::person, {.definite = true, .single = true, .plain = true, .other_than = &owned});
  owner.english.back() += "'s";
  phrase.english.insert(phrase.english.begin(), owner.english.begin(), owner.english.end());
  phrase.french.emplace_back("de");
  append(phrase.french, owner.french);
}

Phrase Phrases::place(Kinds kinds) {
  Phrase phrase = object(kinds, {.definite = true, .single = true, .plain = !chance(0.25)});
  const Noun& noun = *phrase.noun;
  const bool landmark = (noun.kinds & (kind::building | kind::water)) != 0 && chance(0.25);
  const Idiom preposition = landmark ? pick(landmarks) : Idiom{noun.in_english, noun.in_french};
  Words english, french;
  append(english, preposition.english);
  append(french, preposition.french);
  append(english, phrase.english);
  append(french, phrase.french);
  phrase.english = english;
  phrase.french = french;
  return phrase;
}

Phrase Phrases::location() {
  const Phrase object = this->object(kind::container | kind::furniture, {.definite = true, .single = true});
  const bool container = (object.noun->kinds & kind::container) != 0;
  const bool below = !container && object.noun->english != "shelf" && chance(0.4);
  const Idiom preposition = container ? Idiom{"in", "dans"}
                            : below   ? Idiom{"under", "sous"}
                                      : Idiom{"on", "sur"};
  Phrase phrase{
      {std::string(preposition.english)}, {std::string(preposition.french)}, object.agreement, object.noun};
  append(phrase.english, object.english);
  append(phrase.french, object.french);
  return phrase;
}

}  // namespace translator::grammar
