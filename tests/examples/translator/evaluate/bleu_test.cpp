#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <rill/core/error.h>
#include <translator/evaluate/bleu.h>

using translator::Bleu;
using translator::bleu;
using translator::tokenize;
using translator::Tokens;

namespace {

double score_of(const std::vector<const char*>& translations, const std::vector<const char*>& references) {
  std::vector<Tokens> a, b;
  for (const char* text : translations) {
    a.push_back(tokenize(text));
  }
  for (const char* text : references) {
    b.push_back(tokenize(text));
  }
  return bleu(a, b);
}

}  // namespace

TEST_CASE("bleu: identical sentences score 100 and disjoint ones 0") {
  CHECK(score_of({"a b c d e"}, {"a b c d e"}) == doctest::Approx(100).epsilon(1e-12));
  CHECK(score_of({"The Cat is HERE."}, {"the cat is here ."}) == doctest::Approx(100).epsilon(1e-12));
  CHECK(score_of({"a b c d"}, {"e f g h"}) == 0);
  CHECK(score_of({}, {}) == 0);
  CHECK(score_of({""}, {"a b c d"}) == 0);
  CHECK(score_of({"a b c d"}, {""}) == 0);
  CHECK(score_of({"a b c"}, {"a b c"}) == 0);  // no 4-gram: unsmoothed
}

TEST_CASE("bleu: values computed by hand") {
  // Precisions 5/6, 3/5, 1/4 and 0/3: no 4-gram matches.
  CHECK(score_of({"the cat sat on the mat"}, {"the cat is on the mat"}) == 0);
  // a b c d x: precisions 4/5, 3/4, 2/3, 1/2; lengths 5 and 5.
  CHECK(score_of({"a b c d x"}, {"a b c d e"}) ==
        doctest::Approx(100 * std::pow(4.0 / 5 * 3 / 4 * 2 / 3 / 2, 0.25)));
  // a b c d for a b c d e f: all precisions 1, brevity e^(1 - 6/4).
  CHECK(score_of({"a b c d"}, {"a b c d e f"}) == doctest::Approx(100 * std::exp(-0.5)));
  // Longer than the reference: precisions 4/6, 3/5, 2/4, 1/3, no penalty.
  CHECK(score_of({"a b c d x y"}, {"a b c d"}) ==
        doctest::Approx(100 * std::pow(4.0 / 6 * 3 / 5 * 2 / 4 / 3, 0.25)));
}

TEST_CASE("bleu: n-gram counts are clipped to those of the reference") {
  Bleu counts;
  counts.add(tokenize("the the the the the the the"), tokenize("the cat is on the mat"));
  CHECK(counts.precision(1) == doctest::Approx(2.0 / 7));
  CHECK(counts.precision(2) == 0);
}

TEST_CASE("bleu: counts are pooled over the corpus") {
  // The second sentence has no 4-gram. Precisions 7/8, 5/6, 3/4 and 2/2; lengths 8 and 9.
  Bleu counts;
  counts.add(tokenize("a b c d e"), tokenize("a b c d e"));
  counts.add(tokenize("f g x"), tokenize("f g h i"));
  CHECK(counts.precision(1) == doctest::Approx(7.0 / 8));
  CHECK(counts.precision(2) == doctest::Approx(5.0 / 6));
  CHECK(counts.precision(3) == doctest::Approx(3.0 / 4));
  CHECK(counts.precision(4) == doctest::Approx(1));
  CHECK(counts.brevity_penalty() == doctest::Approx(std::exp(1 - 9.0 / 8)));
  CHECK(counts.score() ==
        doctest::Approx(100 * std::exp(1 - 9.0 / 8) * std::pow(7.0 / 8 * 5 / 6 * 3 / 4, 0.25)));
  CHECK(counts.sentences() == 2);
  CHECK(counts.translation_length() == 8);
  CHECK(counts.reference_length() == 9);
}

TEST_CASE("bleu: an unknown word never matches") {
  const Tokens unknown = {"a", "<unk>", "b", "c", "d", "e"};
  Bleu counts;
  counts.add(unknown, unknown);
  CHECK(counts.precision(1) == doctest::Approx(5.0 / 6));
  CHECK(counts.precision(2) == doctest::Approx(3.0 / 5));
  CHECK(counts.precision(4) == doctest::Approx(1.0 / 3));
}

TEST_CASE("bleu: mismatched counts and invalid orders are errors") {
  const std::vector<Tokens> one(1), two(2);
  CHECK_THROWS_WITH_AS(bleu(one, two), "bleu: 1 translations and 2 references; give one for each",
                       rill::Error);
  CHECK_THROWS_AS(Bleu().precision(0), rill::Error);
  CHECK_THROWS_AS(Bleu().precision(5), rill::Error);
}
