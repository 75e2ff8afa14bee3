/// Telling text from everything else by its first bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace translator {

/// Whether the bytes begin gzip data.
bool is_gzip(std::string_view head);

/// Why a file that begins with `head` cannot be read as lines of UTF-8, and what to do about it; nothing if
/// it can.
///
/// Knows UTF-16 and UTF-32, with a byte order mark or without (by their zero bytes), packed files, documents,
/// pictures and data bases by their signatures, and other binary data by the share of zero bytes. `path` is
/// for the command in the message.
std::optional<std::string> refusal(std::string_view head, const std::string& path);

/// A path as a word of a shell command: quoted if need be, "./" before a leading dash.
std::string shell_word(const std::string& path);

}  // namespace translator
