/// BLEU, the standard measure of translation quality.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <translator/text/tokenizer.h>

namespace translator {

/// Corpus BLEU-4 with one reference per sentence: add sentences, then read the score.
///
/// BLEU = 100 · min(1, e^(1 − r/c)) · (p1 p2 p3 p4)^(1/4) with the clipped n-gram precisions p, the length c
/// of the translations and r of the references, all summed over the corpus; no smoothing: 0 if any p is 0.
/// Source: Papineni et al., "BLEU: a method for automatic evaluation of machine translation", ACL 2002.
class Bleu {
 public:
  static constexpr std::size_t orders = 4;

  /// Counts one sentence. An n-gram with Vocabulary::unknown_text in it never matches.
  void add(const Tokens& translation, const Tokens& reference);

  /// 0 to 100; 0 for an empty corpus.
  double score() const;

  /// Clipped precision of n-grams, n in 1 to 4; between 0 and 1, 0 if there are none. Throws rill::Error for
  /// another n.
  double precision(std::size_t n) const;

  /// min(1, e^(1 − r/c)); 0 if there are no translated words.
  double brevity_penalty() const;

  std::int64_t sentences() const { return sentences_; }
  std::int64_t translation_length() const { return translation_length_; }
  std::int64_t reference_length() const { return reference_length_; }

 private:
  std::array<std::int64_t, orders> matched_{};
  std::array<std::int64_t, orders> total_{};
  std::int64_t translation_length_ = 0;
  std::int64_t reference_length_ = 0;
  std::int64_t sentences_ = 0;
};

/// Corpus BLEU of translations against their references. Throws rill::Error if the counts differ.
double bleu(std::span<const Tokens> translations, std::span<const Tokens> references);

}  // namespace translator
