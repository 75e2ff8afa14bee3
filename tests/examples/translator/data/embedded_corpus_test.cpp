#include <doctest/doctest.h>

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <rill/core/random.h>
#include <translator/data/embedded_corpus.h>
#include <translator/data/hold_out.h>
#include <translator/grammar/sentences.h>
#include <translator/text/spacing.h>

using translator::embedded_corpus;
using translator::Pair;
using translator::Tokens;

namespace {

/// The 64-bit FNV-1a hash of a text.
std::uint64_t fingerprint(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}

}  // namespace

TEST_CASE("corpus: distinct pairs of 3 to 15 tokens with hundreds of word types") {
  const std::vector<Pair> pairs = embedded_corpus(20000, 1);
  REQUIRE(pairs.size() == 20000);
  std::set<Tokens> sources, targets;
  std::set<std::string> english, french;
  for (const Pair& pair : pairs) {
    CHECK(sources.insert(pair.source).second);
    CHECK(targets.insert(pair.target).second);
    CHECK(pair.source == translator::tokenize(pair.source_text));
    CHECK(pair.target == translator::tokenize(pair.target_text));
    for (const Tokens* side : {&pair.source, &pair.target}) {
      CHECK(side->size() >= 3);
      CHECK(side->size() <= 15);
    }
    english.insert(pair.source.begin(), pair.source.end());
    french.insert(pair.target.begin(), pair.target.end());
  }
  CHECK(english.size() >= 300);
  CHECK(french.size() >= 300);
  MESSAGE(english.size() << " English and " << french.size() << " French types in 20000 pairs");
}

TEST_CASE("corpus: the same bytes for the same seed, and a longer corpus begins with the shorter one") {
  const std::string text = translator::to_tsv(embedded_corpus(2000, 1));
  CHECK(text == translator::to_tsv(embedded_corpus(2000, 1)));
  CHECK(translator::to_tsv(embedded_corpus(3000, 1)).starts_with(text));
  CHECK_FALSE(translator::to_tsv(embedded_corpus(2000, 2)) == text);
  CHECK(embedded_corpus(0, 1).empty());
  // The same on every machine.
  CHECK(fingerprint(text) == 249284468093232042U);
}

TEST_CASE("corpus: an English sentence has one translation") {
  rill::Rng rng(4);
  translator::grammar::Sentences sentences(rng);
  std::map<std::string, std::string> translations;
  int repeated = 0;
  for (int i = 0; i < 150000; ++i) {
    const translator::grammar::Sentence sentence = sentences.next();
    const auto [at, added] = translations.emplace(sentence.english, sentence.french);
    repeated += added ? 0 : 1;
    if (!added && at->second != sentence.french) {
      FAIL(sentence.english << ": " << at->second << " and " << sentence.french);
    }
  }
  CHECK(repeated > 1000);
  CHECK(translations.size() > 100000);
}

TEST_CASE("corpus: training and validation pairs share no source and no target") {
  std::vector<Pair> pairs = embedded_corpus(5000, 3);
  rill::Rng rng(1);
  const translator::Split split = translator::hold_out(pairs, rng);
  CHECK(split.valid.size() == 250);
  std::set<Tokens> sources, targets;
  for (const Pair& pair : split.train) {
    sources.insert(pair.source);
    targets.insert(pair.target);
  }
  for (const Pair& pair : split.valid) {
    CHECK_FALSE(sources.contains(pair.source));
    CHECK_FALSE(targets.contains(pair.target));
  }
}

TEST_CASE("corpus: elision, contraction and articles are applied everywhere") {
  static const char* const wrong_french[] = {
      " de le ",     " de les ",   " à le ",     " à les ",  "=",         "  ",      " la a",
      " la e",       " je a",      " ne a",      " ne e",    " que i",    " que e",  " que u",
      " de u",       " me a",      " se e",      " le a",    " le e",     " de a",   " ma a",
      " ta é",       " sa o",      " ce a",      " ce é",    " ce i",     " beau a", " un vieux a",
      " un vieux é", " nouveau a", " nouveau é", "un une ",  " , ",       "' ",      "''",
      " l'hib",      "n'hibou",    "d'hibou",    "qu'hibou", " les les ", " ne ne ", " pas pas",
      " est est ",   " la le ",    " le la "};
  static const char* const wrong_english[] = {" a a",      " a e",       " a i",       " a o",   " an b",
                                              " an c",     " an p",      "  ",         " ,",     " the the ",
                                              " not not ", " does has ", " did went ", " to to "};
  const auto check_none = [](const std::string& text, std::span<const char* const> wrong) {
    for (const char* part : wrong) {
      if (text.find(part) != std::string::npos) {
        FAIL_CHECK("'" << std::string(part) << "' in" << text);
      }
    }
  };
  for (const Pair& pair : embedded_corpus(20000, 5)) {
    std::string french = " " + pair.target_text;
    if (const std::size_t pronoun = french.find("train de le"); pronoun != std::string::npos) {
      french.erase(pronoun, 9);  // "en train de le lire": le is a pronoun
    }
    check_none(french, wrong_french);
    check_none(" " + pair.source_text, wrong_english);
  }
}

TEST_CASE("corpus: spacing learned from it reproduces its sentences") {
  translator::Spacing english, french;
  const std::vector<Pair> pairs = embedded_corpus(3000, 7);
  for (const Pair& pair : pairs) {
    english.observe(pair.source_text);
    french.observe(pair.target_text);
  }
  for (const Pair& pair : pairs) {
    CHECK(english.join(pair.source) == translator::normalize_text(pair.source_text));
    CHECK(french.join(pair.target) == translator::normalize_text(pair.target_text));
  }
}

TEST_CASE("corpus: the phenomena it is designed for are frequent") {
  const std::vector<Pair> pairs = embedded_corpus(10000, 6);
  const auto count = [&](const std::string& part, bool source = false) {
    int n = 0;
    for (const Pair& pair : pairs) {
      n += (source ? pair.source_text : " " + pair.target_text).find(part) != std::string::npos ? 1 : 0;
    }
    return n;
  };
  CHECK(count(" pas") > 500);  // ne … pas
  CHECK(count("'") > 2000);    // elision
  CHECK(count(" du ") > 100);  // contraction
  CHECK(count(" au ") > 50);
  CHECK(count("st-ce qu") > 1000);  // questions
  CHECK(count(" en train de ") > 100);
  CHECK(count(" cherche") > 50);    // look for: one word instead of two
  CHECK(count(" plus ") > 100);     // bigger: two words instead of one
  CHECK(count("'s ", true) > 300);  // the owner moves to the end
  CHECK(count(" besoin d") > 30);
  CHECK(count(" parce qu") > 100);
}
