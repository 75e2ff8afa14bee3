/// Verbs with their subjects, put into both languages.
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

/// A verb and everything about it but its subject.
struct Action {
  const Verb* verb = nullptr;
  Tense tense = Tense::present;
  Polarity polarity = Polarity::affirmative;
  Words english_rest = {};  ///< Behind the verb: objects, places, times.
  Words french_rest = {};
  Words pronouns = {};                          ///< French objects before the verb.
  std::optional<Agreement> object_before = {};  ///< What a participle with avoir agrees with.
  std::string_view english_adverb = {};         ///< Before the English main verb: "often".
  std::string_view french_adverb = {};          ///< Behind the French finite verb, "souvent",
  bool adverb_at_end = false;                   ///< or behind all of its parts: "vite".
};

/// "to be" with what is said with être, and with what is said with avoir: avoir faim.
extern const Verb be_etre;
extern const Verb be_avoir;

/// Subject and verb group and the rest, without a sign at the end.
Words english_statement(const Phrase& subject, const Action& action);
Words french_statement(const Phrase& subject, const Action& action);

/// "does the girl read a book": the French question is a statement behind "est-ce que".
Words english_question(const Phrase& subject, const Action& action);

/// The French verb group alone: "ne l'a pas vue".
Words french_group(const Agreement& subject, const Action& action);

/// A command to one whom one knows well: "open the door", "ouvre la porte".
Words english_command(const Action& action);
Words french_command(const Action& action);

/// What all are to do together: "let us open the door", "ouvrons la porte".
Words english_proposal(const Action& action);
Words french_proposal(const Action& action);

}  // namespace translator::grammar
