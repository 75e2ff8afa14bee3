// The members of Sentences that draw a verb with its objects, adverbs, places and times.
#include <algorithm>
#include <array>

#include <rill/core/error.h>
#include <translator/grammar/french.h>
#include <translator/grammar/sentences.h>

namespace translator::grammar {
namespace {

constexpr unsigned bit(Tense tense) { return 1U << static_cast<unsigned>(tense); }

constexpr unsigned at_present = bit(Tense::present) | bit(Tense::can) | bit(Tense::must) | bit(Tense::want);
constexpr unsigned now = bit(Tense::progressive);
constexpr unsigned before = bit(Tense::past);
constexpr unsigned while_past = bit(Tense::imperfect);
constexpr unsigned to_come = bit(Tense::future) | bit(Tense::near_future);

/// A time and the tenses it is used with.
struct Time {
  std::string_view english, french;
  unsigned tenses;
};

constexpr Time times[] = {
    {"today", "aujourd'hui", bit(Tense::present) | bit(Tense::must) | to_come},
    {"every day", "tous les jours", bit(Tense::present) | bit(Tense::can)},
    {"every morning", "tous les matins", bit(Tense::present)},
    {"every evening", "tous les soirs", bit(Tense::present)},
    {"in summer", "en été", at_present},
    {"in winter", "en hiver", at_present},
    {"now", "maintenant", now | bit(Tense::can) | bit(Tense::must) | bit(Tense::want)},
    {"yesterday", "hier", before | while_past},
    {"last night", "hier soir", before | while_past},
    {"last week", "la semaine dernière", before},
    {"last year", "l'année dernière", before},
    {"this morning", "ce matin", before | while_past},
    {"tomorrow", "demain", to_come},
    {"tomorrow morning", "demain matin", to_come},
    {"this evening", "ce soir", to_come},
    {"next week", "la semaine prochaine", to_come},
};

constexpr Idiom spans_of_time[] = {
    {"days", "jours"}, {"weeks", "semaines"}, {"months", "mois"}, {"years", "ans"}};

constexpr Idiom frequencies[] = {{"often", "souvent"},
                                 {"always", "toujours"},
                                 {"sometimes", "parfois"},
                                 {"rarely", "rarement"},
                                 {"also", "aussi"}};

/// An adverb of manner; `at_end`: after the French participle.
struct Manner {
  Uses use;
  std::string_view english, french;
  bool at_end;
};

constexpr Manner manners[] = {{use::well, "well", "bien", false},
                              {use::a_lot, "a lot", "beaucoup", false},
                              {use::quickly, "quickly", "vite", true},
                              {use::slowly, "slowly", "lentement", true}};

/// English object pronouns, French direct and indirect ones.
struct ObjectPronoun {
  Agreement agreement;
  std::string_view english, direct, indirect;
};

constexpr ObjectPronoun object_pronouns[] = {
    {{Person::i}, "me", "me", "me"},      {{Person::you}, "you", "te", "te"},
    {{Person::he}, "him", "le", "lui"},   {{Person::he, Gender::feminine}, "her", "la", "lui"},
    {{Person::we}, "us", "nous", "nous"}, {{Person::they}, "them", "les", "leur"}};

}  // namespace

const Verb& Sentences::verb_with(Uses uses) {
  const Verb* found = &phrases_.pick(verbs());
  while (!has(*found, uses)) {
    found = &phrases_.pick(verbs());
  }
  return *found;
}

Tense Sentences::tense(const Verb& verb, const Agreement& subject) {
  if (has(verb, use::state)) {
    return phrases_.chance(0.8) ? Tense::present : Tense::future;
  }
  static constexpr std::array any = {Tense::present,  Tense::present, Tense::present, Tense::past,
                                     Tense::past,     Tense::past,    Tense::future,  Tense::near_future,
                                     Tense::can,      Tense::must,    Tense::want,    Tense::progressive,
                                     Tense::imperfect};
  Tense chosen = phrases_.pick(any);
  const bool animal = (verb.subjects & kind::person) == 0;
  if (chosen == Tense::progressive && !has(verb, use::lasting)) {
    chosen = Tense::present;
  }
  // Forms that are too rare to be learned occur in the third persons only.
  if (chosen == Tense::imperfect && (!has(verb, use::lasting) || !subject.third())) {
    chosen = Tense::past;
  }
  if (chosen == Tense::future && !subject.third()) {
    chosen = Tense::near_future;
  }
  const bool willed = !has(verb, use::accident) && (verb.subjects & kind::vehicle) == 0 && !animal;
  if ((chosen == Tense::can || chosen == Tense::must || chosen == Tense::want) && !willed) {
    chosen = Tense::past;
  }
  // "They read a book" may be present or past.
  if (chosen == Tense::past && verb.past == verb.english && subject.person != Person::he) {
    chosen = Tense::present;
  }
  return chosen;
}

Polarity Sentences::polarity(Tense tense) {
  const std::size_t draw = phrases_.below(100);
  const bool simple = tense == Tense::present || tense == Tense::past || tense == Tense::future;
  if (draw < 15) {
    return Polarity::negative;
  }
  if (draw < 19 && simple) {
    return Polarity::never;
  }
  if (draw < 22 && (tense == Tense::present || tense == Tense::can)) {
    return Polarity::no_longer;
  }
  return Polarity::affirmative;
}

Action Sentences::begin(const Verb& verb, const Phrase& subject) {
  Action action{.verb = &verb, .tense = tense(verb, subject.agreement)};
  action.polarity = subject.counts_all() ? Polarity::affirmative : polarity(action.tense);
  return action;
}

Action Sentences::complete(const Verb& verb, const Phrase& subject) {
  Action action = begin(verb, subject);
  if (verb.objects != 0) {
    add_object(action, subject);
  }
  add_adverb(action);
  add_place(action);
  return action;
}

void Sentences::add_object(Action& action, const Phrase& subject) {
  const Verb& verb = *action.verb;
  if (add_object_pronoun(action, subject)) {
    return;
  }
  const bool direct = verb.french_preposition.empty();
  const bool place = (verb.objects & (kind::place | kind::destination)) != 0;
  const bool negated = action.polarity != Polarity::affirmative;
  PhraseStyle style{.negated = negated,
                    .generic = has(verb, use::generic),
                    .definite = place || verb.french_preposition == "de" || (negated && !direct),
                    .single = place,
                    .plain = has(verb, use::to_someone) && phrases_.chance(0.6),
                    .other_than = subject.noun};
  const Phrase object = phrases_.object(verb.objects, style);
  if (has(verb, use::to_someone)) {
    return add_recipient(action, object, subject);
  }
  append(action.english_rest, verb.preposition);
  append(action.french_rest, verb.french_preposition);
  append(action.english_rest, object.english);
  append(action.french_rest, object.french);
}

/// "sees her", "parle avec"…: people as pronouns. False if none was drawn.
bool Sentences::add_object_pronoun(Action& action, const Phrase& subject) {
  const Verb& verb = *action.verb;
  const bool possible = (verb.objects & kind::person) != 0 &&
                        (verb.french_preposition.empty() || verb.french_preposition == "à");
  if (!possible || !phrases_.chance(0.35)) {
    return false;
  }
  const ObjectPronoun* pronoun = &phrases_.pick(object_pronouns);
  const auto same = [&](const ObjectPronoun& p) {
    const Person a = p.agreement.person;
    const Person b = subject.agreement.person;
    const bool first = (a == Person::i || a == Person::we) && (b == Person::i || b == Person::we);
    return first || (a == b && a == Person::you);  // I see us, you see you
  };
  while (same(*pronoun)) {
    pronoun = &phrases_.pick(object_pronouns);
  }
  const bool direct = verb.french_preposition.empty();
  append(action.english_rest, verb.preposition);
  append(action.english_rest, pronoun->english);
  append(action.pronouns, direct ? pronoun->direct : pronoun->indirect);
  if (direct) {
    action.object_before = pronoun->agreement;
  }
  return true;
}

/// "gives the boy a key", "donne une clé au garçon", or with a pronoun: "gives him a key", "lui donne une
/// clé".
void Sentences::add_recipient(Action& action, const Phrase& object, const Phrase& subject) {
  static constexpr std::array<std::size_t, 3> third = {2, 3, 5};
  if (phrases_.chance(0.45)) {
    const ObjectPronoun& pronoun = object_pronouns[phrases_.pick(third)];
    append(action.english_rest, pronoun.english);
    append(action.pronouns, pronoun.indirect);
    append(action.english_rest, object.english);
    append(action.french_rest, object.french);
    return;
  }
  const Phrase recipient = phrases_.object(
      kind::person, {.definite = true, .plain = phrases_.chance(0.7), .other_than = subject.noun});
  append(action.english_rest, recipient.english);
  append(action.english_rest, object.english);
  append(action.french_rest, object.french);
  append(action.french_rest, "à");
  append(action.french_rest, recipient.french);
}

void Sentences::add_adverb(Action& action) {
  const bool simple =
      action.tense == Tense::present || action.tense == Tense::past || action.tense == Tense::future;
  if (simple && action.polarity == Polarity::affirmative && phrases_.chance(0.12)) {
    const Idiom& frequency = phrases_.pick(frequencies);
    action.english_adverb = frequency.english;
    action.french_adverb = frequency.french;
    return;
  }
  const Manner& manner = phrases_.pick(manners);
  const bool free = action.polarity == Polarity::affirmative || action.polarity == Polarity::negative;
  if (has(*action.verb, manner.use) && free && action.tense != Tense::progressive && phrases_.chance(0.4)) {
    append(action.english_rest, manner.english);
    action.french_adverb = manner.french;
    action.adverb_at_end = manner.at_end;
  }
}

void Sentences::add_place(Action& action) {
  const Verb& verb = *action.verb;
  if (verb.places != 0 && (has(verb, use::needs_place) || phrases_.chance(0.3))) {
    const Phrase place = phrases_.place(verb.places);
    append(action.english_rest, place.english);
    append(action.french_rest, place.french);
  }
}

/// A time, perhaps none.
Phrase Sentences::time(const Action& action) {
  const bool lasting = has(*action.verb, use::state) || action.polarity == Polarity::never ||
                       action.polarity == Polarity::no_longer || !action.english_adverb.empty();
  Phrase phrase;
  if (lasting || !phrases_.chance(0.3)) {
    return phrase;
  }
  const bool past = action.tense == Tense::past;
  if ((past || action.tense == Tense::near_future) && phrases_.chance(0.25)) {  // two days ago, in two days
    const Idiom& number = phrases_.pick(numbers());
    const Idiom& span = phrases_.pick(spans_of_time);
    append(phrase.english, past ? "" : "in");
    append(phrase.english, number.english);
    append(phrase.english, span.english);
    append(phrase.english, past ? "ago" : "");
    append(phrase.french, past ? "il y a" : "dans");
    append(phrase.french, number.french);
    append(phrase.french, span.french);
    return phrase;
  }
  const Time* time = &phrases_.pick(times);
  while ((time->tenses & bit(action.tense)) == 0) {
    time = &phrases_.pick(times);
  }
  append(phrase.english, time->english);
  append(phrase.french, time->french);
  return phrase;
}

}  // namespace translator::grammar
