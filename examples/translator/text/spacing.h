/// Putting tokens together again, with the spaces that the language puts around its signs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <translator/text/text.h>

namespace translator {

/// Where a language puts spaces around its signs, learned from raw text.
///
/// English writes "Ready?", French "Prêt ?": after observe() of enough sentences, join() does as the majority
/// did. A sign never seen is spaced as in English. Signs between two digits ("2.0", "12:30") are counted
/// apart.
class Spacing {
 public:
  /// Counts the spaces around the signs of one raw sentence.
  void observe(std::string_view raw);

  /// The sentence: tokens joined by single spaces but where the language has none.
  ///
  /// No space follows a word's apostrophe (l'eau, don't) or stands inside unspaced scripts; straight quotes
  /// open and close in turn.
  std::string join(const Tokens& tokens) const;

  /// {"?": [before, after, seen], …}; signs between digits are spelled "0?0".
  nlohmann::json to_json() const;

  /// The inverse of to_json(). Throws rill::Error naming `where` if the form is wrong.
  static Spacing from_json(const nlohmann::json& json, std::string_view where);

  friend bool operator==(const Spacing&, const Spacing&) = default;

 private:
  struct Count {
    std::int64_t before = 0;  // how often a space or the beginning stood before the sign,
    std::int64_t after = 0;   // and a space or the end behind it,
    std::int64_t seen = 0;    // of how many times
    friend bool operator==(const Count&, const Count&) = default;
  };

  enum class Side { before, after };
  bool spaced(const Tokens& tokens, std::size_t sign, Side side) const;

  std::map<std::string, Count> signs_;
};

/// The tokens joined with the spacing of English.
std::string detokenize(const Tokens& tokens);

}  // namespace translator
