/// Whole sentences of the embedded corpus.
#pragma once

#include <rill/core/random.h>

#include <translator/grammar/clause.h>
#include <string>

namespace translator::grammar {

/// A sentence in both languages.
struct Sentence {
  std::string english;
  std::string french;
};

/// The sentence in writing, ending in `sign`.
Sentence write_sentence(const Words& english, const Words& french, char sign);

/// Draws sentences at random: statements, questions, commands, sentences of two clauses.
class Sentences {
 public:
  explicit Sentences(rill::Rng& rng) : phrases_(rng) {}

  Sentence next();

 private:
  // A verb with its objects, adverbs, places and times.
  Action begin(const Verb& verb, const Phrase& subject);
  Action complete(const Verb& verb, const Phrase& subject);
  Tense tense(const Verb& verb, const Agreement& subject);
  Polarity polarity(Tense tense);
  void add_object(Action& action, const Phrase& subject);
  bool add_object_pronoun(Action& action, const Phrase& subject);
  void add_recipient(Action& action, const Phrase& object, const Phrase& subject);
  void add_adverb(Action& action);
  void add_place(Action& action);
  Phrase time(const Action& action);
  const Verb& verb_with(Uses uses);

  // Descriptions of somebody or something.
  Phrase described();
  Action description(const Phrase& subject);
  void add_quality(Action& action, Kinds kinds, const Agreement& subject);
  void add_feeling(Action& action);

  // Kinds of sentences.
  Sentence statement();
  Sentence being();
  Sentence comparison();
  Sentence existence();
  Sentence question();
  Sentence question_word();
  Sentence question_object();
  Sentence question_count();
  Sentence question_being();
  Sentence command();
  Sentence because();
  Sentence when();
  Sentence and_it();
  Sentence opinion();
  Sentence relative();

  Phrases phrases_;
};

}  // namespace translator::grammar
