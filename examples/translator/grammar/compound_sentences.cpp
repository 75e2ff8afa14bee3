// The members of Sentences that draw commands and sentences of two clauses.
#include <array>

#include <translator/grammar/english.h>
#include <translator/grammar/french.h>
#include <translator/grammar/sentences.h>

namespace translator::grammar {
namespace {

/// An action and its reason: {English verb, particle}, {state}, and whether the French state takes avoir.
struct Reason {
  std::string_view verb, particle;
  Idiom state;
  bool with_avoir;
};

constexpr Reason reasons[] = {
    {"eat", "", {"hungry", "faim"}, true},       {"drink", "", {"thirsty", "soif"}, true},
    {"sleep", "", {"tired", "fatigué"}, false},  {"rest", "", {"tired", "fatigué"}, false},
    {"sleep", "", {"sleepy", "sommeil"}, true},  {"go", "home", {"tired", "fatigué"}, false},
    {"cry", "", {"sad", "triste"}, false},       {"cry", "", {"afraid", "peur"}, true},
    {"laugh", "", {"happy", "heureux"}, false},  {"sing", "", {"happy", "heureux"}, false},
    {"dance", "", {"happy", "heureux"}, false},  {"run", "", {"afraid", "peur"}, true},
    {"run", "", {"late", "en retard"}, false},   {"hurry", "", {"late", "en retard"}, false},
    {"stay", "", {"sick", "malade"}, false},     {"stay", "", {"tired", "fatigué"}, false},
    {"get", "dressed", {"cold", "froid"}, true}, {"swim", "", {"hot", "chaud"}, true},
    {"buy", "", {"rich", "riche"}, false},       {"sell", "", {"poor", "pauvre"}, false},
    {"steal", "", {"poor", "pauvre"}, false},    {"work", "", {"poor", "pauvre"}, false},
};

/// The French word for a state; adjectives agree.
std::string state_word(const Idiom& state, const Agreement& agreement) {
  for (const Adjective& adjective : adjectives()) {
    if (adjective.english == state.english) {
      return french::adjective(adjective, agreement.gender, agreement.plural());
    }
  }
  return std::string(state.french);
}

constexpr Idiom opinions[] = {{"think", "penser"}, {"know", "savoir"}, {"say", "dire"}, {"hope", "espérer"}};

Phrase understood(const Agreement& agreement) { return {{}, {}, agreement}; }

}  // namespace

/// "Open the door!", "Do not open the door!", "Please open the door.", "Let us open the door."
Sentence Sentences::command() {
  const Verb* verb = &phrases_.pick(verbs());
  while ((verb->subjects & kind::person) == 0 || has(*verb, use::state | use::accident) ||
         verb->english == "live") {
    verb = &phrases_.pick(verbs());
  }
  const std::size_t draw = phrases_.below(100);
  Action action{.verb = verb};
  action.polarity = draw < 30 ? Polarity::negative : Polarity::affirmative;
  const Phrase you = understood({Person::you});
  do {  // pronouns would follow a French command
    action.english_rest = action.french_rest = action.pronouns = {};
    if (verb->objects != 0) {
      add_object(action, you);
    }
  } while (!action.pronouns.empty());
  add_place(action);
  if (draw >= 75) {
    return write_sentence(english_proposal(action), french_proposal(action), '.');
  }
  Words english, french = french_command(action);
  if (draw >= 50) {
    append(english, "please");
    append(english, english_command(action));
    append(french, ", s'il te plaît");
    return write_sentence(english, french, '.');
  }
  return write_sentence(english_command(action), french, '!');
}

/// "The girl cries because she is sad."
Sentence Sentences::because() {
  const Reason& reason = phrases_.pick(reasons);
  const Verb* verb = &phrases_.pick(verbs());
  while (verb->english != reason.verb || verb->particle != reason.particle ||
         !verb->french_preposition.empty()) {
    verb = &phrases_.pick(verbs());
  }
  const Phrase subject = phrases_.subject(verb->subjects & kind::being);
  Action action = begin(*verb, subject);
  action.tense = phrases_.chance(0.5) || (verb->past == verb->english) ? Tense::present : Tense::past;
  action.polarity = Polarity::affirmative;
  if (verb->objects != 0) {
    add_object(action, subject);
  }
  if (has(*verb, use::needs_place)) {
    add_place(action);
  }
  Action state{.verb = reason.with_avoir ? &be_avoir : &be_etre,
               .tense = action.tense == Tense::past ? Tense::imperfect : Tense::present};
  append(state.english_rest, reason.state.english);
  append(state.french_rest,
         reason.with_avoir ? std::string(reason.state.french) : state_word(reason.state, subject.agreement));
  const bool person = subject.noun == nullptr || (subject.noun->kinds & kind::person) != 0;
  const Phrase again = Phrases::pronoun(subject.agreement, person);
  Words english = english_statement(subject, action), french = french_statement(subject, action);
  append(english, "because");
  append(french, "parce que");
  append(english, english_statement(again, state));
  append(french, french_statement(again, state));
  return write_sentence(english, french, '.');
}

/// "The girl was sleeping when the train arrived."
Sentence Sentences::when() {
  const Verb& verb = verb_with(use::lasting);
  Phrase subject = phrases_.subject(verb.subjects);
  while (!subject.agreement.third()) {
    subject = phrases_.subject(verb.subjects);
  }
  Action action{.verb = &verb, .tense = Tense::imperfect};
  if (verb.objects != 0) {
    add_object(action, subject);
  }
  if (has(verb, use::needs_place)) {
    add_place(action);
  }
  const Verb& event_verb = verb_with(use::interrupts);
  const Phrase other =
      phrases_.object(event_verb.subjects, {.definite = true, .plain = true, .other_than = subject.noun});
  Action event{.verb = &event_verb, .tense = Tense::past};
  if (event_verb.objects != 0) {
    add_object(event, other);
  }
  Words english = english_statement(subject, action), french = french_statement(subject, action);
  append(english, "when");
  append(french, "quand");
  append(english, english_statement(other, event));
  append(french, french_statement(other, event));
  return write_sentence(english, french, '.');
}

/// "The boy bought a pear and ate it": the pronoun agrees with what it stands for.
Sentence Sentences::and_it() {
  const Verb& first_verb = verb_with(use::acquires);
  const Verb* second_verb = &verb_with(use::disposes);
  while ((second_verb->objects & first_verb.objects) == 0) {
    second_verb = &verb_with(use::disposes);
  }
  const Phrase subject = phrases_.subject(first_verb.subjects & second_verb->subjects);
  Action first{.verb = &first_verb, .tense = phrases_.chance(0.5) ? Tense::present : Tense::past};
  const Phrase object = phrases_.object(first_verb.objects & second_verb->objects & ~Kinds{kind::person},
                                        {.other_than = subject.noun});
  append(first.english_rest, object.english);
  append(first.french_rest, object.french);

  Action second{.verb = second_verb, .tense = first.tense};
  const bool negative = phrases_.chance(0.25);
  second.polarity = negative ? Polarity::negative : Polarity::affirmative;
  const bool plural = object.agreement.plural();
  append(second.english_rest, plural ? "them" : "it");
  append(second.pronouns, plural ? "les" : object.agreement.gender == Gender::feminine ? "la" : "le");
  second.object_before = object.agreement;

  const Phrase same = understood(subject.agreement);
  Words english = english_statement(subject, first), french = french_statement(subject, first);
  append(english, negative ? "but" : "and");
  append(french, negative ? "mais" : "et");
  append(english, english_statement(same, second));
  append(french, french_statement(same, second));
  return write_sentence(english, french, '.');
}

/// "I think that the key is in the box."
Sentence Sentences::opinion() {
  const Idiom& opinion = phrases_.pick(opinions);
  const Phrase thinker = phrases_.subject(kind::person);
  const Person person = thinker.agreement.person;
  const bool hope = opinion.english == "hope";  // for what will happen
  const bool quality = !hope && phrases_.chance(0.5);
  const Verb& verb = phrases_.pick(verbs());
  const Phrase subject =
      quality ? described() : phrases_.subject(verb.subjects, {.other_than = thinker.noun});
  Action action = quality ? description(subject) : begin(verb, subject);
  if (!quality && verb.objects != 0) {
    add_object(action, subject);
  }
  if (!quality && has(verb, use::needs_place)) {
    add_place(action);
  }
  if (hope) {
    action.tense = has(*action.verb, use::state) ? Tense::future : Tense::near_future;
  }
  Words english = thinker.english, french = thinker.french;
  append(english, english::present(opinion.english, person));
  append(english, "that");
  append(french, french::conjugate(opinion.french, french::SimpleTense::present, person));
  append(french, "que");
  append(english, english_statement(subject, action));
  append(french, french_statement(subject, action));
  return write_sentence(english, french, '.');
}

/// "The woman who works at the station is tired", "the letters that Paul wrote are long".
Sentence Sentences::relative() {
  const bool of_subject = phrases_.chance(0.5);
  const Verb* verb = &phrases_.pick(verbs());
  const auto fits = [&](const Verb& v) {
    const bool direct = v.objects != 0 && v.french_preposition.empty() && v.preposition.empty();
    return of_subject ? (v.subjects & kind::person) != 0
                      : direct && !has(v, use::to_someone | use::generic) && (v.objects & kind::being) == 0;
  };
  while (!fits(*verb)) {
    verb = &phrases_.pick(verbs());
  }
  Phrase head;
  while (head.noun == nullptr) {
    head = phrases_.object(of_subject ? verb->subjects & kind::person : verb->objects,
                           {.definite = true, .plain = true});
  }
  Words english = head.english, french = head.french;
  if (of_subject) {
    const Phrase who{{"who"}, {"qui"}, head.agreement, head.noun};
    const Action action = complete(*verb, who);
    append(english, english_statement(who, action));
    append(french, french_statement(who, action));
  } else {
    const Phrase subject = phrases_.subject(verb->subjects);
    Action action = begin(*verb, subject);
    action.object_before = head.agreement;
    append(english, "that");
    append(french, "que");
    append(english, english_statement(subject, action));
    append(french, french_statement(subject, action));
  }
  const Action quality = description({{}, {}, head.agreement, head.noun});
  append(english, english_statement(understood(head.agreement), quality));
  append(french, french_statement(understood(head.agreement), quality));
  return write_sentence(english, french, '.');
}

}  // namespace translator::grammar
