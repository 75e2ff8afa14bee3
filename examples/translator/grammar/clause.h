/// Verbs with their subjects in both languages.
#pragma once

#include <optional>
#include <string_view>

#include <translator/grammar/phrases.h>

namespace translator::grammar {

/// The tenses, by their English: the French is another system.
enum class Tense {
  present,      ///< he reads: il lit
  progressive,  ///< he is reading: il est en train de lire
  past,         ///< he read: il a lu
  imperfect,    ///< he was reading: il lisait; he was: il était
  future,       ///< he will read: il lira
  near_future,  ///< he is going to read: il va lire
  can,          ///< he can read: il peut lire
  must,         ///< he must read: il doit lire
  want,         ///< he wants to read: il veut lire
};

enum class Polarity { affirmative, negative, never, no_longer };

/// A verb and all that belongs to it except its subject.
struct Action {
  const Verb* verb = nullptr;
  Tense tense = Tense::present;
  Polarity polarity = Polarity::affirmative;
  Words english_rest = {};  ///< after the verb: objects, places, times
  Words french_rest = {};
  Words pronouns = {};                          ///< French objects before the verb
  std::optional<Agreement> object_before = {};  ///< object that a participle with avoir agrees with
  std::string_view english_adverb = {};         ///< before the English main verb: "often"
  std::string_view french_adverb = {};          ///< after the French finite verb: "souvent"
  bool adverb_at_end = false;                   ///< after the whole French verb instead: "vite"
};

/// "to be" that is être in French, and that is avoir: avoir faim.
extern const Verb be_etre;
extern const Verb be_avoir;

/// Subject, verb group and the rest, without punctuation at the end.
Words english_statement(const Phrase& subject, const Action& action);
Words french_statement(const Phrase& subject, const Action& action);

/// "does the girl read a book"; the French question is a statement after "est-ce que".
Words english_question(const Phrase& subject, const Action& action);

/// The French verb group alone: "ne l'a pas vue".
Words french_group(const Agreement& subject, const Action& action);

/// A command to somebody addressed as tu: "open the door", "ouvre la porte".
Words english_command(const Action& action);
Words french_command(const Action& action);

/// A proposal: "let us open the door", "ouvrons la porte".
Words english_proposal(const Action& action);
Words french_proposal(const Action& action);

}  // namespace translator::grammar
