#include <translator/text/spacing.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <vector>

#include <rill/core/error.h>

namespace translator {
namespace {

constexpr std::string_view straight_quote = "\"";
constexpr std::int64_t most_seen = std::int64_t{1} << 60;  // twice as many still fit

bool is_number(std::string_view token) {
  return std::all_of(token.begin(), token.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether the word ends in an apostrophe without a space after it: l'eau, don't, but not "the boys' dog".
bool ends_in_elision(std::string_view word, std::string_view next) {
  static constexpr std::array<std::string_view, 7> endings = {"s", "t", "m", "d", "ll", "re", "ve"};
  const bool plural_owner = word.size() > 2 && word.ends_with("s'") &&
                            std::find(endings.begin(), endings.end(), next) == endings.end();
  return word.ends_with('\'') && !plural_owner;
}

/// The key of a sign: "0.0" for a point between digits, else the sign.
std::string key_of(const Tokens& tokens, std::size_t sign) {
  const bool inside = sign > 0 && sign + 1 < tokens.size();
  const bool between_digits = inside && is_number(tokens[sign - 1]) && is_number(tokens[sign + 1]);
  return between_digits ? "0" + tokens[sign] + "0" : tokens[sign];
}

/// Whether a space or the beginning precedes each token in the normalised text.
std::vector<bool> spaces_before(const Tokens& tokens, std::string_view normal) {
  std::vector<bool> spaces;
  std::size_t at = 0;
  for (const std::string& token : tokens) {
    const bool space = normal[at] == ' ';
    spaces.push_back(space || at == 0);
    at += token.size() + (space ? 1 : 0);
  }
  return spaces;
}

/// The spacing of English, for a sign never seen.
bool default_spacing(const std::string& key, bool before) {
  static constexpr std::string_view tight_before = ".,;:!?)]}%…”’»。，、！？：；";
  static constexpr std::string_view tight_after = "([{¿¡#“‘«$£€。，、！？：；";
  static constexpr std::string_view tight_both = "-/@‐‑–";
  return (before ? tight_before : tight_after).find(key) == std::string_view::npos &&
         tight_both.find(key) == std::string_view::npos;
}

}  // namespace

void Spacing::observe(std::string_view raw) {
  const std::string normal = normalize_text(raw);
  const Tokens tokens = tokenize(normal);
  std::vector<bool> spaces = spaces_before(tokens, normal);
  spaces.push_back(true);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!is_word(tokens[i]) && tokens[i] != straight_quote) {
      Count& count = signs_[key_of(tokens, i)];
      ++count.seen;
      count.before += spaces[i] ? 1 : 0;
      count.after += spaces[i + 1] ? 1 : 0;
    }
  }
}

bool Spacing::spaced(const Tokens& tokens, std::size_t sign, Edge side) const {
  const bool before = side == Edge::before;
  if (tokens[sign] == straight_quote) {
    const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(sign);
    const bool opens = std::count(tokens.begin(), end, straight_quote) % 2 == 0;
    return before == opens;
  }
  const std::string key = key_of(tokens, sign);
  if (const auto found = signs_.find(key); found != signs_.end()) {
    const Count& count = found->second;
    return 2 * (before ? count.before : count.after) > count.seen;
  }
  if (key != tokens[sign]) {  // between digits: 2.0 and 12:30 and 42,000, but "3, 4"
    return tokens[sign] == "," && tokens[sign + 1].size() != 3 && default_spacing(",", before);
  }
  return default_spacing(key, before);
}

std::string Spacing::join(const Tokens& tokens) const {
  const auto space_before = [&](std::size_t right) {
    const std::string& a = tokens[right - 1];
    const std::string& b = tokens[right];
    if (is_word(a) && is_word(b)) {
      return !ends_in_elision(a, b) && !is_unspaced(a) && !is_unspaced(b);
    }
    return (a != b || a == straight_quote) && (is_word(a) || spaced(tokens, right - 1, Edge::after)) &&
           (is_word(b) || spaced(tokens, right, Edge::before));
  };
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && space_before(i)) {
      text.push_back(' ');
    }
    text += tokens[i];
  }
  return text;
}

nlohmann::json Spacing::to_json() const {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [sign, count] : signs_) {
    json[sign] = {count.before, count.after, count.seen};
  }
  return json;
}

Spacing Spacing::from_json(const nlohmann::json& json, std::string_view where) {
  rill::check(json.is_object(), "{}: the spacing is no JSON object", where);
  Spacing spacing;
  for (const auto& [sign, counts] : json.items()) {
    const bool three =
        counts.is_array() && counts.size() == 3 &&
        std::all_of(counts.begin(), counts.end(), [](const auto& n) { return n.is_number_integer(); });
    rill::check(three, "{}: the spacing of '{}' must be three counts", where, printable(sign));
    const Count count{counts[0].template get<std::int64_t>(), counts[1].template get<std::int64_t>(),
                      counts[2].template get<std::int64_t>()};
    const bool in_order = std::min(count.before, count.after) >= 0 &&
                          std::max(count.before, count.after) <= count.seen && count.seen <= most_seen;
    rill::check(in_order, "{}: the spacing of '{}' counts more spaces than signs", where, printable(sign));
    spacing.signs_[sign] = count;
  }
  return spacing;
}

}  // namespace translator
