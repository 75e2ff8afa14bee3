/// Words and their ids.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <translator/text/tokenizer.h>

namespace translator {

/// The words of one language: ids 0 to 3 are padding, start, end and the unknown word; then the words, most
/// frequent first, ties in the order of their bytes.
///
/// The four specials are not words: a text that contains "<pad>" or "</s>" gets an id above 3 for it.
class Vocabulary {
 public:
  static constexpr std::int64_t pad = 0;
  static constexpr std::int64_t start = 1;
  static constexpr std::int64_t end = 2;
  static constexpr std::int64_t unknown = 3;
  static constexpr std::int64_t specials = 4;

  /// The text of `unknown`, which tokenize() never returns.
  static constexpr std::string_view unknown_text = "<unk>";

  /// Only the four specials.
  Vocabulary() = default;

  /// The words in the given order, ids from 4 on. Throws rill::Error if one is empty or occurs twice.
  explicit Vocabulary(std::vector<std::string> words);

  std::int64_t size() const { return specials + static_cast<std::int64_t>(words_.size()); }

  /// The id of a word, or `unknown`.
  std::int64_t id(std::string_view word) const;

  /// The text of an id: a word, unknown_text, or "<pad>", "<s>", "</s>". Throws rill::Error if it is out of
  /// range.
  std::string_view text(std::int64_t id) const;

  /// The ids of a sentence, with `end`.
  std::vector<std::int64_t> encode(const Tokens& tokens) const;

  /// The words up to the first `end`; padding and start are left out, unknown words are unknown_text.
  Tokens decode(std::span<const std::int64_t> ids) const;

  /// The words without the specials, id 4 first.
  const std::vector<std::string>& words() const { return words_; }

  nlohmann::json to_json() const;

  /// The inverse of to_json(). Throws rill::Error naming `where` (a file) if anything is wrong.
  static Vocabulary from_json(const nlohmann::json& json, std::string_view where);

  friend bool operator==(const Vocabulary& a, const Vocabulary& b) { return a.words_ == b.words_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  std::vector<std::string> words_;
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> ids_;
};

/// Counts words for a vocabulary.
class WordCounter {
 public:
  /// Counts the words of a sentence.
  void add(const Tokens& tokens);

  /// Words and distinct words so far.
  std::int64_t tokens() const { return tokens_; }
  std::int64_t types() const { return static_cast<std::int64_t>(counts_.size()); }

  /// The words that occur at least min_count times, in the order of Vocabulary.
  Vocabulary vocabulary(std::int64_t min_count = 1) const;

 private:
  std::unordered_map<std::string, std::int64_t> counts_;
  std::int64_t tokens_ = 0;
};

}  // namespace translator
