/// Joining tokens to text, with spaces around punctuation as the language has them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <translator/text/tokenizer.h>

namespace translator {

/// The spaces of a language around punctuation marks ("signs"), learned from raw text.
///
/// English has "Ready?", French "Prêt ?": after observe() of enough sentences, join() follows the majority. A
/// sign never seen is spaced as in English. Signs between two digits ("2.0", "12:30") are counted separately.
class Spacing {
 public:
  /// Counts the spaces around the signs of one raw sentence.
  void observe(std::string_view raw);

  /// The sentence: tokens joined by single spaces except where the language has none.
  ///
  /// There is no space after the apostrophe of a word (l'eau, don't) or inside unspaced scripts; straight
  /// quotes open and close in turn.
  std::string join(const Tokens& tokens) const;

  /// {"?": [before, after, seen], …}; signs between digits are spelled "0?0".
  nlohmann::json to_json() const;

  /// The inverse of to_json(). Throws rill::Error naming `where` if the form is wrong.
  static Spacing from_json(const nlohmann::json& json, std::string_view where);

  friend bool operator==(const Spacing&, const Spacing&) = default;

 private:
  struct Count {
    std::int64_t before = 0;  // times after a space or at the beginning
    std::int64_t after = 0;   // times before a space or at the end
    std::int64_t seen = 0;
    friend bool operator==(const Count&, const Count&) = default;
  };

  enum class Edge { before, after };
  bool spaced(const Tokens& tokens, std::size_t sign, Edge side) const;

  std::map<std::string, Count> signs_;
};

}  // namespace translator
