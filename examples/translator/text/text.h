/// Text as the translator sees it: normal form, tokens, and what may be shown on a terminal.
///
/// All strings are UTF-8. Nothing here throws on odd text: bytes that are not UTF-8 are read as U+FFFD.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace translator {

/// The words and signs of one sentence, in order. No token is empty or holds a space.
using Tokens = std::vector<std::string>;

/// True if the bytes are well-formed UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF).
bool is_utf8(std::string_view text);

/// The text in lower case and normal form C, with the accidents of typing removed.
///
/// Every white space (no-break and thin spaces too) and control character becomes one plain space, with none
/// at the ends; U+2019 and U+02BC become '; what has no width (U+200B, soft hyphen, direction marks, joiners,
/// variation selectors, U+FEFF: Unicode's default ignorable characters) is dropped. The result is its own
/// normal form.
std::string normalize(std::string_view text);

/// The tokens of the normalised text: `\w+'?|[^\w\s]`, with letters, digits, combining marks and _ as \w.
///
/// So "L'été, c'est long." gives l' été , c' est long . and a letter is never parted from its marks. Scripts
/// that put no spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) give one token for each
/// letter with its marks.
Tokens tokenize(std::string_view text);

/// True if the token begins with a letter, digit, mark or _: it is a word and not a sign.
bool is_word(std::string_view token);

/// True if tokenize() made the token out of a script that puts no spaces between words.
bool is_unspaced(std::string_view token);

/// The text fit for a terminal: control characters, direction overrides and bytes that are not UTF-8 written
/// as escapes (\x1b, \u202e), so that nothing in a file or its name can steer the terminal.
std::string safe(std::string_view text);

}  // namespace translator
