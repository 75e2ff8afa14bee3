#include <translator/text/tokenizer.h>

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <memory>

#include <rill/core/error.h>

namespace translator {
namespace {

constexpr char32_t replacement = 0xFFFD;

/// The code point at the front of `text` and its bytes; {replacement, 1} and valid = false for a bad byte.
struct Decoded {
  char32_t code;
  std::size_t bytes;
  bool valid;
};

Decoded decode_utf8(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) {
    return {first, 1, true};
  }
  utf8proc_int32_t code = 0;
  const auto length = static_cast<utf8proc_ssize_t>(std::min<std::size_t>(text.size(), 4));
  const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), length, &code);
  if (bytes <= 0) {
    return {replacement, 1, false};
  }
  return {static_cast<char32_t>(code), static_cast<std::size_t>(bytes), true};
}

void append_code_point(std::string& text, char32_t code) {
  if (code < 0x80) {
    text.push_back(static_cast<char>(code));
    return;
  }
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes.data());
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(n));
}

utf8proc_category_t category(char32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

bool is_letter(char32_t code) {
  const auto c = category(code);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool is_mark(char32_t code) {
  const auto c = category(code);
  return c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME;
}

bool is_word_character(char32_t code) {
  const auto c = category(code);
  return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NO) || code == '_';  // letters, marks, numbers
}

bool is_space(char32_t code) {
  const auto c = category(code);
  return c == UTF8PROC_CATEGORY_ZS || c == UTF8PROC_CATEGORY_ZL || c == UTF8PROC_CATEGORY_ZP ||
         c == UTF8PROC_CATEGORY_CC;
}

bool is_ignorable(char32_t code) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->ignorable;
}

/// Letters of the scripts without spaces between words.
bool is_unspaced_letter(char32_t code) {
  struct Range {
    char32_t first, last;
  };
  static constexpr Range ranges[] = {
      {0x0E01, 0x0E4E},    // Thai
      {0x0E81, 0x0ECF},    // Lao
      {0x1000, 0x103F},    // Burmese
      {0x1050, 0x108F},    // Burmese
      {0x1780, 0x17DD},    // Khmer
      {0x3005, 0x3007},    // iteration mark and zero of Chinese and Japanese
      {0x3041, 0x30FF},    // Hiragana, Katakana
      {0x3105, 0x312F},    // Bopomofo
      {0x31F0, 0x31FF},    // Katakana
      {0x3400, 0x4DBF},    // Han
      {0x4E00, 0x9FFF},    // Han
      {0xF900, 0xFAFF},    // Han
      {0xFF66, 0xFF9F},    // Katakana of half width
      {0x20000, 0x3FFFD},  // Han
  };
  if (code < ranges[0].first) {
    return false;
  }
  const auto past = std::upper_bound(std::begin(ranges), std::end(ranges), code,
                                     [](char32_t value, const Range& range) { return value < range.first; });
  return code <= std::prev(past)->last && is_word_character(code);
}

/// The normal form C. The text must be well-formed.
std::string compose(const std::string& text) {
  utf8proc_uint8_t* mapped = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  rill::check(size >= 0, "normalize: {}", utf8proc_errmsg(size));
  return {reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(size)};
}

/// Appends the code point as in normalised text, composition aside.
void append_normal(std::string& out, char32_t code) {
  constexpr char32_t dotted_capital_i = 0x130;
  constexpr char32_t dot_above = 0x307;
  if (is_ignorable(code)) {
    return;
  }
  if (is_space(code)) {
    if (!out.empty() && out.back() != ' ') {
      out.push_back(' ');
    }
  } else if (code == 0x2019 || code == 0x02BC) {
    out.push_back('\'');
  } else if (code == dotted_capital_i) {  // the one letter whose lower case is two code points
    append_code_point(out, U'i');
    append_code_point(out, dot_above);
  } else {
    append_code_point(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
  }
}

/// Whether a capital sigma at `position` ends its word: its lower case is then ς.
bool ends_word(std::string_view text, std::size_t position) {
  constexpr std::size_t sigma_bytes = 2;
  std::size_t before = position;
  while (before > 0 && (static_cast<unsigned char>(text[before - 1]) & 0xC0) == 0x80) {
    --before;
  }
  if (before == 0) {
    return false;
  }
  const auto letter_or_mark = [](char32_t code) { return is_letter(code) || is_mark(code); };
  const std::string_view rest = text.substr(position + sigma_bytes);
  return letter_or_mark(decode_utf8(text.substr(before - 1)).code) &&
         (rest.empty() || !letter_or_mark(decode_utf8(rest).code));
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Decoded next = decode_utf8(text);
    if (!next.valid) {
      return false;
    }
    text.remove_prefix(next.bytes);
  }
  return true;
}

std::string normalize_text(std::string_view text) {
  constexpr char32_t capital_sigma = 0x3A3;
  constexpr char32_t final_sigma = 0x3C2;
  std::string out;
  out.reserve(text.size());
  bool ascii = true;
  for (std::size_t i = 0; i < text.size();) {
    const Decoded next = decode_utf8(text.substr(i));
    ascii = ascii && next.code < 0x80;
    append_normal(out, next.code == capital_sigma && ends_word(text, i) ? final_sigma : next.code);
    i += next.bytes;
  }
  if (!out.empty() && out.back() == ' ') {
    out.pop_back();
  }
  return ascii ? out : compose(out);
}

Tokens tokenize(std::string_view text) {
  enum class OpenToken { none, word, unspaced };
  const std::string normal = normalize_text(text);
  Tokens tokens;
  OpenToken open = OpenToken::none;  // whether the last token may be extended
  for (std::string_view rest = normal; !rest.empty();) {
    const Decoded next = decode_utf8(rest);
    const std::string_view bytes = rest.substr(0, next.bytes);
    rest.remove_prefix(next.bytes);
    const bool unspaced = is_unspaced_letter(next.code) && !is_mark(next.code);
    if (next.code == ' ') {
      open = OpenToken::none;
    } else if (unspaced) {
      tokens.emplace_back(bytes);
      open = OpenToken::unspaced;
    } else if (is_word_character(next.code)) {
      const bool grows = open == OpenToken::word || (open == OpenToken::unspaced && is_mark(next.code));
      if (grows) {
        tokens.back().append(bytes);
      } else {
        tokens.emplace_back(bytes);
        open = OpenToken::word;
      }
    } else {
      if (next.code == '\'' && open != OpenToken::none) {
        tokens.back().push_back('\'');
      } else {
        tokens.emplace_back(bytes);
      }
      open = OpenToken::none;
    }
  }
  return tokens;
}

bool is_word(std::string_view token) { return !token.empty() && is_word_character(decode_utf8(token).code); }

bool is_unspaced(std::string_view token) {
  return !token.empty() && is_unspaced_letter(decode_utf8(token).code);
}

std::string printable(std::string_view text) {
  const auto controls_direction =
      [](char32_t code) {  // marks, embeddings, overrides and isolates; line separators
        return code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
               (code >= 0x2066 && code <= 0x2069);
      };
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Decoded next = decode_utf8(text);
    if (!next.valid) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (category(next.code) == UTF8PROC_CATEGORY_CC) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(next.code));
    } else if (controls_direction(next.code)) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(next.code));
    } else {
      out += text.substr(0, next.bytes);
    }
    text.remove_prefix(next.bytes);
  }
  return out;
}

}  // namespace translator
