#include <translator/grammar/clause.h>

#include <array>
#include <tuple>
#include <utility>

#include <translator/grammar/english.h>
#include <translator/grammar/french.h>

namespace translator::grammar {

const Verb be_etre = {.english = "be", .french = "être", .subjects = kind::being, .uses = use::state};
const Verb be_avoir = {.english = "be", .french = "avoir", .subjects = kind::being, .uses = use::state};

namespace {

/// The parts of an English verb group.
struct EnglishGroup {
  Words finite;    // agrees with the subject; with the particle, unless an auxiliary
  bool auxiliary;  // precedes the subject in a question and takes "not"
  Words rest;      // participle or infinitive
};

Words with_particle(std::string_view form, const Verb& verb) {
  Words words;
  append(words, form);
  append(words, verb.particle);
  return words;
}

Words words_of(std::string_view text) {
  Words words;
  append(words, text);
  return words;
}

EnglishGroup english_group(const Action& action, Person person) {
  const Verb& verb = *action.verb;
  const bool is_be = verb.english == "be";
  const auto base = [&] { return with_particle(verb.english, verb); };
  const auto going = [&] { return with_particle(english::ing(verb), verb); };
  const auto to_base = [&] {
    Words words{"to"};
    append(words, base());
    return words;
  };
  switch (action.tense) {
    case Tense::present:
      return is_be ? EnglishGroup{words_of(english::be(person)), true, {}}
                   : EnglishGroup{with_particle(english::present(verb.english, person), verb), false, {}};
    case Tense::progressive:
      return {words_of(english::be(person)), true, going()};
    case Tense::past:
      return {with_particle(english::past(verb), verb), false, {}};
    case Tense::imperfect:
      return {words_of(english::was(person)), true, is_be ? Words{} : going()};
    case Tense::future:
      return {{"will"}, true, base()};
    case Tense::near_future: {
      Words rest{"going"};
      append(rest, to_base());
      return {words_of(english::be(person)), true, rest};
    }
    case Tense::can:
      return {{"can"}, true, base()};
    case Tense::must:
      return {{"must"}, true, base()};
    case Tense::want:
      break;
  }
  return {words_of(english::present("want", person)), false, to_base()};
}

/// The same group with do, does or did, for "not" and for questions.
EnglishGroup with_do(const Action& action, Person person) {
  EnglishGroup group = english_group(action, person);
  if (group.auxiliary) {
    return group;
  }
  const bool past = action.tense == Tense::past;
  const Verb& verb = *action.verb;
  Words base = with_particle(verb.english, verb);
  if (action.tense == Tense::want) {
    base = {"want"};
    append(base, group.rest);
  }
  return {words_of(past ? "did" : english::present("do", person)), true, base};
}

std::string_view polarity_word(Polarity polarity) {
  return polarity == Polarity::never ? "never" : polarity == Polarity::no_longer ? "no longer" : "";
}

}  // namespace

Words english_statement(const Phrase& subject, const Action& action) {
  const Person person = subject.agreement.person;
  const bool negative = action.polarity == Polarity::negative;
  EnglishGroup group = negative ? with_do(action, person) : english_group(action, person);
  Words words = subject.english;
  const std::string_view between = negative ? "not"
                                   : action.polarity == Polarity::affirmative
                                       ? action.english_adverb
                                       : polarity_word(action.polarity);
  if (negative && group.finite.front() == "can") {
    append(words, "cannot");
  } else if (group.auxiliary) {
    append(words, group.finite);
    append(words, between);
  } else {
    append(words, between);
    append(words, group.finite);
  }
  append(words, group.rest);
  append(words, action.english_rest);
  return words;
}

Words english_question(const Phrase& subject, const Action& action) {
  const EnglishGroup group = with_do(action, subject.agreement.person);
  Words words = group.finite;
  append(words, subject.english);
  append(words, action.english_adverb);
  append(words, group.rest);
  append(words, action.english_rest);
  return words;
}

Words english_command(const Action& action) {
  Words words;
  if (action.polarity == Polarity::negative) {
    append(words, "do not");
  }
  append(words, with_particle(action.verb->english, *action.verb));
  append(words, action.english_rest);
  return words;
}

Words english_proposal(const Action& action) {
  Words words{"let", "us"};
  append(words, with_particle(action.verb->english, *action.verb));
  append(words, action.english_rest);
  return words;
}

namespace {

using french::conjugate;

std::string_view negation_word(Polarity polarity) {
  return polarity == Polarity::never ? "jamais" : polarity == Polarity::no_longer ? "plus" : "pas";
}

Words pronouns_of(const Action& action, Person person) {
  static constexpr std::array<std::string_view, 5> reflexive = {"me", "te", "se", "nous", "se"};
  Words words;
  if ((action.verb->uses & use::reflexive) != 0) {
    append(words, reflexive[static_cast<std::size_t>(person)]);
  }
  append(words, action.pronouns);
  return words;
}

/// The finite verb before an infinitive, and the words between them.
std::pair<std::string, Words> leading_verb(Tense tense, Person person) {
  switch (tense) {
    case Tense::progressive:
      return {conjugate("être", french::SimpleTense::present, person), {"en", "train", "de"}};
    case Tense::near_future:
      return {conjugate("aller", french::SimpleTense::present, person), {}};
    case Tense::can:
      return {conjugate("pouvoir", french::SimpleTense::present, person), {}};
    case Tense::must:
      return {conjugate("devoir", french::SimpleTense::present, person), {}};
    default:
      return {conjugate("vouloir", french::SimpleTense::present, person), {}};
  }
}

bool is_simple(Tense tense) {
  return tense == Tense::present || tense == Tense::imperfect || tense == Tense::future;
}

std::string simple_form(const Action& action, Person person) {
  const french::SimpleTense tense = action.tense == Tense::present     ? french::SimpleTense::present
                                    : action.tense == Tense::imperfect ? french::SimpleTense::imperfect
                                                                       : french::SimpleTense::future;
  return conjugate(action.verb->french, tense, person);
}

/// The participle after être or avoir in the past.
std::pair<std::string, std::string> past_forms(const Agreement& subject, const Action& action) {
  const bool etre = (action.verb->uses & (use::with_etre | use::reflexive)) != 0;
  const Agreement agreement = etre ? subject : action.object_before.value_or(Agreement{});
  return {conjugate(etre ? "être" : "avoir", french::SimpleTense::present, subject.person),
          french::participle(action.verb->french, agreement.gender, agreement.plural())};
}

}  // namespace

Words french_group(const Agreement& subject, const Action& action) {
  const bool negated = action.polarity != Polarity::affirmative;
  const Words pronouns = pronouns_of(action, subject.person);
  std::string finite, main;  // the main verb, if it is not the finite one
  Words between;             // the finite verb and the main verb
  bool pronouns_first = true;
  if (is_simple(action.tense)) {
    finite = simple_form(action, subject.person);
  } else if (action.tense == Tense::past) {
    std::tie(finite, main) = past_forms(subject, action);
  } else {
    std::tie(finite, between) = leading_verb(action.tense, subject.person);
    main = action.verb->french;
    pronouns_first = false;
  }

  Words words;
  append(words, negated ? "ne" : "");
  append(words, pronouns_first ? pronouns : Words{});
  append(words, finite);
  append(words, negated ? negation_word(action.polarity) : "");
  append(words, between);
  append(words, pronouns_first ? Words{} : pronouns);
  append(words, action.adverb_at_end ? "" : action.french_adverb);
  append(words, main);
  append(words, action.adverb_at_end ? action.french_adverb : "");
  append(words, action.verb->french_after);
  return words;
}

Words french_statement(const Phrase& subject, const Action& action) {
  Words words = subject.french;
  append(words, french_group(subject.agreement, action));
  append(words, action.french_rest);
  return words;
}

namespace {

/// The imperative of tu or nous: the present, without the s of -es and -as.
std::string imperative(std::string_view infinitive, Person person) {
  std::string form = conjugate(infinitive, french::SimpleTense::present, person);
  if (person == Person::you && (form.ends_with("es") || form.ends_with("as"))) {
    form.pop_back();
  }
  return form;
}

Words french_imperative(const Action& action, Person person) {
  const bool reflexive = (action.verb->uses & use::reflexive) != 0;
  std::string verb = imperative(action.verb->french, person);
  Words words;
  if (action.polarity == Polarity::negative) {
    append(words, "ne");
    append(words, reflexive ? (person == Person::you ? "te" : "nous") : "");
    append(words, verb + " pas");
  } else {
    append(words, verb + (!reflexive ? "" : person == Person::you ? "-toi" : "-nous"));
  }
  append(words, action.french_adverb);
  append(words, action.french_rest);
  return words;
}

}  // namespace

Words french_command(const Action& action) { return french_imperative(action, Person::you); }

Words french_proposal(const Action& action) { return french_imperative(action, Person::we); }

}  // namespace translator::grammar
