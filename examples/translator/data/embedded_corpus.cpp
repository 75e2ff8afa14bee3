#include <translator/data/embedded_corpus.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <rill/core/error.h>
#include <rill/core/random.h>
#include <translator/grammar/sentences.h>

namespace translator {
namespace {

bool is_short_enough(const Tokens& tokens) {
  constexpr std::size_t shortest = 3;
  constexpr std::size_t longest = 15;
  return tokens.size() >= shortest && tokens.size() <= longest;
}

}  // namespace

std::vector<Pair> embedded_corpus(std::size_t count, std::uint64_t seed) {
  constexpr std::size_t most_misses = 10000;  // in a row
  rill::Rng rng(seed);
  grammar::Sentences sentences(rng);
  std::unordered_set<std::string> sources, targets;
  std::vector<Pair> pairs;
  for (std::size_t misses = 0; pairs.size() < count; ++misses) {
    rill::check(misses < most_misses, "corpus: the grammar has run out of sentences after {} of {}",
                pairs.size(), count);
    grammar::Sentence sentence = sentences.next();
    Pair pair{std::move(sentence.english), std::move(sentence.french), {}, {}};
    if (sources.contains(pair.source_text) || targets.contains(pair.target_text)) {
      continue;
    }
    pair.source = tokenize(pair.source_text);
    pair.target = tokenize(pair.target_text);
    if (is_short_enough(pair.source) && is_short_enough(pair.target)) {
      sources.insert(pair.source_text);
      targets.insert(pair.target_text);
      pairs.push_back(std::move(pair));
      misses = 0;
    }
  }
  return pairs;
}

std::string to_tsv(const std::vector<Pair>& pairs) {
  std::string text;
  for (const Pair& pair : pairs) {
    text += pair.source_text + '\t' + pair.target_text + '\n';
  }
  return text;
}

}  // namespace translator
