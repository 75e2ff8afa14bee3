#include <translator/evaluate/bleu.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include <rill/core/error.h>
#include <translator/text/vocabulary.h>

namespace translator {
namespace {

using Ngram = std::span<const std::string>;

struct NgramLess {
  bool operator()(Ngram a, Ngram b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  }
};

using NgramCounts = std::map<Ngram, std::int64_t, NgramLess>;

NgramCounts ngrams(const Tokens& tokens, std::size_t n) {
  NgramCounts counts;
  for (std::size_t i = 0; i + n <= tokens.size(); ++i) {
    ++counts[Ngram(tokens).subspan(i, n)];
  }
  return counts;
}

bool has_unknown(Ngram ngram) {
  return std::find(ngram.begin(), ngram.end(), Vocabulary::unknown_text) != ngram.end();
}

}  // namespace

void Bleu::add(const Tokens& translation, const Tokens& reference) {
  for (std::size_t n = 1; n <= orders; ++n) {
    const NgramCounts wanted = ngrams(reference, n);
    for (const auto& [ngram, count] : ngrams(translation, n)) {
      const auto found = wanted.find(ngram);
      total_[n - 1] += count;
      if (found != wanted.end() && !has_unknown(ngram)) {
        matched_[n - 1] += std::min(count, found->second);
      }
    }
  }
  translation_length_ += static_cast<std::int64_t>(translation.size());
  reference_length_ += static_cast<std::int64_t>(reference.size());
  ++sentences_;
}

double Bleu::precision(std::size_t n) const {
  rill::check(n >= 1 && n <= orders, "bleu: the precision of {}-grams is not counted; n is 1 to {}", n,
              orders);
  const std::int64_t total = total_[n - 1];
  return total == 0 ? 0 : static_cast<double>(matched_[n - 1]) / static_cast<double>(total);
}

double Bleu::brevity_penalty() const {
  if (translation_length_ == 0) {
    return 0;
  }
  const double ratio = static_cast<double>(reference_length_) / static_cast<double>(translation_length_);
  return std::min(1.0, std::exp(1 - ratio));
}

double Bleu::score() const {
  double log_sum = 0;
  for (std::size_t n = 1; n <= orders; ++n) {
    if (matched_[n - 1] == 0) {
      return 0;
    }
    log_sum += std::log(precision(n));
  }
  return 100 * brevity_penalty() * std::exp(log_sum / orders);
}

double bleu(std::span<const Tokens> translations, std::span<const Tokens> references) {
  rill::check(translations.size() == references.size(),
              "bleu: {} translations and {} references; give one for each", translations.size(),
              references.size());
  Bleu counts;
  for (std::size_t i = 0; i < translations.size(); ++i) {
    counts.add(translations[i], references[i]);
  }
  return counts.score();
}

}  // namespace translator
