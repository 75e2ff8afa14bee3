/// Text as the translator sees it: normal form, tokens, and text that is safe to print.
///
/// All strings are UTF-8. Nothing here throws on malformed text: bytes that are not UTF-8 are read as U+FFFD.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace translator {

/// The words and punctuation marks of one sentence, in order. No token is empty or holds a space.
using Tokens = std::vector<std::string>;

/// True if the bytes are well-formed UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF).
bool is_utf8(std::string_view text);

/// The text in lower case and normal form C, with accidents of typing removed.
///
/// Runs of white space (no-break and thin spaces too) and control characters become one space, with none at
/// the ends; U+2019 and U+02BC become '; Unicode's default ignorable characters (U+200B, soft hyphen,
/// direction marks, joiners, variation selectors, U+FEFF) are dropped. Idempotent.
std::string normalize_text(std::string_view text);

/// The tokens of the normalised text: `\w+'?|[^\w\s]`, with letters, digits, combining marks and _ as \w.
///
/// So "L'été, c'est long." gives l' été , c' est long . and a letter is never separated from its marks.
/// Scripts without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) give one token per
/// letter with its marks.
Tokens tokenize(std::string_view text);

/// True if the token begins with a letter, digit, mark or _: it is a word, not punctuation.
bool is_word(std::string_view token);

/// True if the token comes from a script without spaces between words.
bool is_unspaced(std::string_view token);

/// The text as it may be printed: control characters, direction overrides and bytes that are not UTF-8 become
/// escapes (\x1b, \u202e), so that nothing in a file or its name can control the terminal.
std::string printable(std::string_view text);

}  // namespace translator
