#include <translator/grammar/sentences.h>

#include <array>
#include <initializer_list>

#include <rill/core/error.h>
#include <translator/grammar/english.h>
#include <translator/grammar/french.h>

namespace translator::grammar {
namespace {

constexpr Kinds goods = kind::thing | kind::clothes | kind::vehicle | kind::furniture;

/// States with "avoir" in French and "be" in English: avoir faim.
constexpr Idiom feelings[] = {{"hungry", "faim"}, {"thirsty", "soif"},   {"cold", "froid"},
                              {"hot", "chaud"},   {"sleepy", "sommeil"}, {"afraid", "peur"}};

constexpr Idiom degrees[] = {{"very", "très"}, {"too", "trop"}, {"so", "si"}};

void append_phrase(Words& english, Words& french, const Phrase& phrase) {
  append(english, phrase.english);
  append(french, phrase.french);
}

/// "est-ce que …": the French question that keeps the word order.
Words french_question(std::string_view word, const Phrase& subject, const Action& action) {
  Words words;
  append(words, word == "que" ? "qu'est-ce que" : word);
  append(words, word == "que" ? "" : "est-ce que");
  append(words, french_statement(subject, action));
  return words;
}

}  // namespace

Sentence write_sentence(const Words& english, const Words& french, char sign) {
  return {english::sentence(english, sign), french::sentence(french, sign)};
}

Sentence Sentences::next() {
  using Kind = Sentence (Sentences::*)();
  struct Weighted {
    std::size_t percent;
    Kind kind;
  };
  static constexpr Weighted kinds[] = {
      {40, &Sentences::statement},      {10, &Sentences::being},         {4, &Sentences::comparison},
      {5, &Sentences::existence},       {7, &Sentences::question},       {5, &Sentences::question_word},
      {4, &Sentences::question_object}, {3, &Sentences::question_count}, {3, &Sentences::question_being},
      {4, &Sentences::command},         {3, &Sentences::because},        {3, &Sentences::when},
      {4, &Sentences::and_it},          {3, &Sentences::opinion},        {2, &Sentences::relative}};
  std::size_t draw = phrases_.below(100);
  for (const Weighted& one : kinds) {
    if (draw < one.percent) {
      return (this->*one.kind)();
    }
    draw -= one.percent;
  }
  rill::fail("corpus: the percentages of the kinds of sentences do not add up to 100");
}

Sentence Sentences::statement() {
  const Verb& verb = phrases_.pick(verbs());
  const Phrase subject = phrases_.subject(verb.subjects);
  Action action = complete(verb, subject);
  const Phrase when = time(action);
  if (!when.english.empty() && phrases_.chance(0.25)) {
    Words english = when.english, french = when.french;
    append(english, ",");
    append(french, ",");
    append(english, english_statement(subject, action));
    append(french, french_statement(subject, action));
    return write_sentence(english, french, '.');
  }
  append_phrase(action.english_rest, action.french_rest, when);
  return write_sentence(english_statement(subject, action), french_statement(subject, action), '.');
}

/// A subject that can be described.
Phrase Sentences::described() {
  static constexpr std::array<Kinds, 6> others = {kind::food,  kind::text,
                                                  goods,       kind::container | kind::furniture,
                                                  kind::place, kind::clothes | kind::vehicle};
  constexpr PhraseStyle style{.definite = true, .plain = true};
  return phrases_.chance(0.6) ? phrases_.subject(kind::being, style)
                              : phrases_.object(phrases_.pick(others), style);
}

Action Sentences::description(const Phrase& subject) {
  const bool pronoun_or_name = subject.noun == nullptr;
  const Kinds kinds = pronoun_or_name ? Kinds{kind::adult} : subject.noun->kinds;
  const bool feels = (kinds & kind::being) != 0 && phrases_.chance(0.35);
  static constexpr std::array tenses = {Tense::present,   Tense::present,   Tense::present,
                                        Tense::imperfect, Tense::imperfect, Tense::future};
  Action action{.verb = feels ? &be_avoir : &be_etre, .tense = phrases_.pick(tenses)};
  if (action.tense == Tense::future && (!subject.agreement.third() || (kinds & kind::being) == 0)) {
    action.tense = Tense::present;
  }
  const std::size_t draw = phrases_.below(100);
  action.polarity = draw < 16 ? Polarity::negative : draw < 22 ? Polarity::no_longer : Polarity::affirmative;
  if (action.polarity == Polarity::no_longer && action.tense == Tense::future) {
    action.polarity = Polarity::negative;
  }
  if (subject.counts_all()) {
    action.polarity = Polarity::affirmative;
  }
  if (feels) {
    add_feeling(action);
  } else {
    add_quality(action, kinds, subject.agreement);
  }
  return action;
}

void Sentences::add_quality(Action& action, Kinds kinds, const Agreement& subject) {
  const Adjective& adjective = phrases_.adjective(kinds);
  if (adjective.comparative != "-" && action.polarity == Polarity::affirmative && phrases_.chance(0.35)) {
    const Idiom& degree = phrases_.pick(degrees);
    append(action.english_rest, degree.english);
    append(action.french_rest, degree.french);
  }
  append(action.english_rest, adjective.english);
  append(action.french_rest, french::adjective(adjective, subject.gender, subject.plural()));
}

void Sentences::add_feeling(Action& action) {
  const Idiom& feeling = phrases_.pick(feelings);
  append(action.english_rest, feeling.english);
  append(action.french_rest, feeling.french);
}

/// "The girl is happy", "the key is in the box", "the boy is ten years old".
Sentence Sentences::being() {
  const std::size_t draw = phrases_.below(100);
  if (draw < 10) {
    const Phrase subject = phrases_.subject(kind::child | kind::animal);
    const Idiom& number = phrases_.pick(numbers());
    Action age{.verb = &be_avoir};
    append(age.english_rest, number.english);
    append(age.english_rest, "years old");
    append(age.french_rest, number.french);
    append(age.french_rest, "ans");
    return write_sentence(english_statement(subject, age), french_statement(subject, age), '.');
  }
  if (draw < 35) {
    const bool thing = phrases_.chance(0.5);
    const Phrase subject =
        thing ? phrases_.object(kind::thing | kind::text | kind::clothes | kind::food, {.definite = true})
              : phrases_.subject(kind::being);
    const Phrase place =
        thing ? phrases_.location() : phrases_.place(kind::home | kind::outdoors | kind::building);
    Action action{.verb = &be_etre, .tense = phrases_.chance(0.6) ? Tense::present : Tense::imperfect};
    action.polarity = phrases_.chance(0.15) ? Polarity::negative : Polarity::affirmative;
    append_phrase(action.english_rest, action.french_rest, place);
    return write_sentence(english_statement(subject, action), french_statement(subject, action), '.');
  }
  const Phrase subject = described();
  const Action action = description(subject);
  return write_sentence(english_statement(subject, action), french_statement(subject, action), '.');
}

/// "The dog is bigger than the cat", "my coat is as long as your dress".
Sentence Sentences::comparison() {
  const Adjective* adjective = &phrases_.pick(adjectives());
  while (adjective->comparative == "-") {
    adjective = &phrases_.pick(adjectives());
  }
  const Phrase one = phrases_.object(adjective->kinds, {.definite = true});
  const Kinds same = one.noun == nullptr ? Kinds{kind::adult} : one.noun->kinds & adjective->kinds;
  const Phrase other = phrases_.object(same, {.definite = true, .other_than = one.noun});
  Action action{.verb = &be_etre, .tense = phrases_.chance(0.8) ? Tense::present : Tense::imperfect};
  action.polarity = phrases_.chance(0.15) ? Polarity::negative : Polarity::affirmative;
  const bool equal = phrases_.chance(0.25);
  const bool one_word = !adjective->comparative.empty();
  append(action.english_rest, equal ? "as" : one_word ? adjective->comparative : "more");
  append(action.english_rest, equal || !one_word ? adjective->english : "");
  append(action.english_rest, equal ? "as" : "than");
  append(action.french_rest, equal ? "aussi" : "plus");
  append(action.french_rest, french::adjective(*adjective, one.agreement.gender, one.agreement.plural()));
  append(action.french_rest, "que");
  append_phrase(action.english_rest, action.french_rest, other);
  return write_sentence(english_statement(one, action), french_statement(one, action), '.');
}

/// "There is a key in the box": il y a.
Sentence Sentences::existence() {
  const bool being = phrases_.chance(0.5);
  const bool plural = phrases_.chance(0.5);
  const bool past = phrases_.chance(0.25);
  const bool asks = phrases_.chance(0.25);
  const bool none = !asks && phrases_.chance(0.2);
  const Phrase what =
      phrases_.bare(being ? kind::being : kind::thing | kind::food | kind::clothes | kind::text, plural);
  Words english, french;
  append(french, asks ? "est-ce que il" : "il");
  append(french, none ? "ne y" : "y");
  append(french, past ? "avait" : "a");
  append(french, none ? "pas de" : "");
  const std::string_view be = past ? (plural ? "were" : "was") : plural ? "are" : "is";
  append(english, asks ? be : "there");
  append(english, asks ? "there" : be);
  if (none) {
    append(english, "no");
  } else if (plural) {
    const Idiom& number = phrases_.pick(numbers());
    append(english, number.english);
    append(french, number.french);
  } else {
    append(english, "a");
    append(french, what.agreement.gender == Gender::feminine ? "une" : "un");
  }
  append_phrase(english, french, what);
  append_phrase(english, french,
                being ? phrases_.place(kind::home | kind::outdoors | kind::building) : phrases_.location());
  return write_sentence(english, french, asks ? '?' : '.');
}

/// Questions answered by yes or no.
Sentence Sentences::question() {
  const bool quality = phrases_.chance(0.25);
  const Verb& verb = phrases_.pick(verbs());
  for (;;) {
    const Phrase subject = quality ? described() : phrases_.subject(verb.subjects);
    Action action = quality ? description(subject) : complete(verb, subject);
    if (action.polarity != Polarity::affirmative || subject.agreement.person == Person::i) {
      continue;  // nobody asks about himself
    }
    if (!quality) {
      append_phrase(action.english_rest, action.french_rest, time(action));
    }
    return write_sentence(english_question(subject, action), french_question("", subject, action), '?');
  }
}

/// Questions with where, when and why.
Sentence Sentences::question_word() {
  static constexpr std::array<Idiom, 3> asked = {{{"where", "où"}, {"when", "quand"}, {"why", "pourquoi"}}};
  const std::size_t which = phrases_.below(asked.size());
  const Verb* verb = &phrases_.pick(verbs());
  while ((which == 0 && verb->places == 0) || (which < 2 && has(*verb, use::state))) {
    verb = &phrases_.pick(verbs());
  }
  Phrase subject = phrases_.subject(verb->subjects);
  while (subject.agreement.person == Person::i) {
    subject = phrases_.subject(verb->subjects);
  }
  Action action = begin(*verb, subject);
  action.polarity = Polarity::affirmative;
  if (verb->objects != 0) {
    add_object(action, subject);
  }
  if (which != 0) {
    add_place(action);
  }
  Words english{std::string(asked[which].english)};
  append(english, english_question(subject, action));
  return write_sentence(english, french_question(asked[which].french, subject, action), '?');
}

/// "What is the girl looking for?", "Who broke the window?"
Sentence Sentences::question_object() {
  const Verb* verb = &phrases_.pick(verbs());
  while (verb->objects == 0 || !verb->french_preposition.empty() || has(*verb, use::to_someone)) {
    verb = &phrases_.pick(verbs());
  }
  if ((verb->subjects & kind::person) != 0 && phrases_.chance(0.35)) {
    const Phrase who{{"who"}, {"qui"}};
    Action action = begin(*verb, who);
    action.polarity = Polarity::affirmative;
    add_object(action, who);
    append_phrase(action.english_rest, action.french_rest, time(action));
    return write_sentence(english_statement(who, action), french_statement(who, action), '?');
  }
  const Phrase subject = phrases_.subject(verb->subjects);
  Action action = begin(*verb, subject);
  action.polarity = Polarity::affirmative;
  append(action.english_rest, verb->preposition);
  const bool person = (verb->objects & ~Kinds{kind::being}) == 0;
  append_phrase(action.english_rest, action.french_rest, time(action));
  Words english{person ? "who" : "what"};
  append(english, english_question(subject, action));
  return write_sentence(english, french_question(person ? "qui" : "que", subject, action), '?');
}

/// "How many apples did the boy buy?": the participle agrees with the apples.
Sentence Sentences::question_count() {
  const Verb* verb = &phrases_.pick(verbs());
  constexpr Kinds counted = goods | kind::food | kind::text | kind::animal | kind::clothes;
  while ((verb->objects & counted) == 0 || !verb->french_preposition.empty() ||
         has(*verb, use::to_someone | use::generic)) {
    verb = &phrases_.pick(verbs());
  }
  const Phrase object = phrases_.bare(verb->objects & counted, true);
  const Phrase subject = phrases_.subject(verb->subjects, {.other_than = object.noun});
  Action action = begin(*verb, subject);
  action.polarity = Polarity::affirmative;
  action.object_before = object.agreement;
  append(action.english_rest, verb->preposition);
  Words english{"how", "many"};
  append(english, object.english);
  append(english, english_question(subject, action));
  Words french{"combien", "de"};
  append(french, object.french);
  append(french, french_question("", subject, action));
  return write_sentence(english, french, '?');
}

/// "Where is the key?", "How old is your sister?", "What is in the box?"
Sentence Sentences::question_being() {
  const std::size_t draw = phrases_.below(100);
  Words english, french;
  if (draw < 15) {
    append(english, "what is");
    append(french, "qu'est-ce que il y a");
    append_phrase(english, french, phrases_.location());
    return write_sentence(english, french, '?');
  }
  const bool age = draw < 40;
  const Phrase subject =
      age ? phrases_.object(kind::child | kind::animal | kind::adult, {.definite = true})
          : phrases_.object(kind::being | goods | kind::container | kind::text | kind::building,
                            {.definite = true});
  const bool past = !age && phrases_.chance(0.3);
  const Person person = subject.agreement.person;
  append(english, age ? "how old" : "where");
  append(english, past ? english::was(person) : english::be(person));
  append(french, age ? "quel âge" : "où");
  append(french,
         french::conjugate(age ? "avoir" : "être",
                           past ? french::SimpleTense::imperfect : french::SimpleTense::present, person));
  append_phrase(english, french, subject);
  return write_sentence(english, french, '?');
}

}  // namespace translator::grammar
