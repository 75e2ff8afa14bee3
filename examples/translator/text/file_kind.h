/// The kind of a file by its first bytes: UTF-8 text or something else.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace translator {

/// Whether the bytes begin gzip data.
bool is_gzip(std::string_view head);

/// The reason why a file that begins with `head` cannot be read as lines of UTF-8, and the remedy; nothing if
/// it can.
///
/// Recognises UTF-16 and UTF-32, with a byte order mark or without (by their zero bytes), compressed files,
/// documents, images and databases by their signatures, and other binary data by its fraction of zero bytes.
/// `path` is for the command in the message.
std::optional<std::string> unreadable_reason(std::string_view head, const std::string& path);

/// A path as a word of a shell command: quoted if necessary, "./" before a leading dash.
std::string shell_word(const std::string& path);

}  // namespace translator
