#include <translator/text/file_kind.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include <translator/text/tokenizer.h>

namespace translator {
namespace {

using namespace std::string_view_literals;

/// Bytes that identify a kind of file, and the command that extracts its text ("" if there is none).
struct Signature {
  std::size_t offset;
  std::string_view bytes;
  std::string_view name;
  std::string_view unpack;
};

constexpr Signature signatures[] = {
    {0, "\x1f\x8b"sv, "gzip-compressed twice", "gunzip -c"},
    {0, "\x1f\x9d"sv, "compressed (.Z)", "gunzip -c"},
    {0,
     "\xfd"
     "7zXZ\0"sv,
     "xz-compressed", "xz -dc"},
    {0, "BZh"sv, "bzip2-compressed", "bzip2 -dc"},
    {0, "\x28\xb5\x2f\xfd"sv, "zstd-compressed", "zstd -dc"},
    {0, "\x04\x22\x4d\x18"sv, "lz4-compressed", "lz4 -dc"},
    {0, "LZIP\x01"sv, "lzip-compressed", "lzip -dc"},
    {0, "PK\x03\x04"sv, "a zip archive (or a document in one: xlsx, ods, docx)", "unzip -p"},
    {0, "PK\x05\x06"sv, "an empty zip archive", ""},
    {0, "7z\xbc\xaf\x27\x1c"sv, "a 7-Zip archive", "7z e -so"},
    {0, "Rar!\x1a\x07"sv, "a RAR archive", "unrar p"},
    {257, "ustar"sv, "a tar archive", "tar -xOf"},
    {0, "%PDF-"sv, "a PDF document", "pdftotext -layout"},
    {0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"sv, "an old Office document (xls, doc)", ""},
    {0, "{\\rtf"sv, "an RTF document", ""},
    {0, "SQLite format 3\0"sv, "an SQLite database", ""},
    {0, "PAR1"sv, "a Parquet table", ""},
    {0, "\x89PNG"sv, "a PNG image", ""},
    {0, "\xff\xd8\xff"sv, "a JPEG image", ""},
    {0, "GIF8"sv, "a GIF image", ""},
    {0,
     "\x7f"
     "ELF"sv,
     "a program", ""},
};

struct Encoding {
  std::string_view mark;
  std::string_view name;
};

// UTF-32 stands first: its little-endian mark begins with that of UTF-16.
constexpr Encoding encodings[] = {{"\xff\xfe\0\0"sv, "UTF-32LE"},
                                  {"\0\0\xfe\xff"sv, "UTF-32BE"},
                                  {"\xff\xfe"sv, "UTF-16LE"},
                                  {"\xfe\xff"sv, "UTF-16BE"}};

/// The encoding by its zero bytes: text in any script has ASCII characters, whose other bytes are zero.
std::string_view encoding_by_zeros(const std::array<std::size_t, 4>& zeros) {
  const std::size_t all = zeros[0] + zeros[1] + zeros[2] + zeros[3];
  const auto most = [&](std::size_t n) { return 10 * n >= 9 * all; };
  if (most(zeros[2] + zeros[3] + zeros[1]) && 10 * zeros[2] > 3 * all && 10 * zeros[3] > 3 * all) {
    return "UTF-32LE";
  }
  if (most(zeros[0] + zeros[1] + zeros[2]) && 10 * zeros[0] > 3 * all && 10 * zeros[1] > 3 * all) {
    return "UTF-32BE";
  }
  if (most(zeros[1] + zeros[3])) {
    return "UTF-16LE";
  }
  return most(zeros[0] + zeros[2]) ? "UTF-16BE" : "";
}

std::string conversion(std::string_view encoding, const std::string& path) {
  return fmt::format("the text is {}; convert it: iconv -f {} -t UTF-8 {} > utf8.txt", encoding, encoding,
                     shell_word(path));
}

}  // namespace

bool is_gzip(std::string_view head) { return head.starts_with("\x1f\x8b"); }

std::optional<std::string> unreadable_reason(std::string_view head, const std::string& path) {
  for (const Encoding& encoding : encodings) {
    if (head.starts_with(encoding.mark)) {
      // By the name without byte order, iconv reads the mark and drops it.
      return conversion(encoding.name.substr(0, 6), path);
    }
  }
  for (const Signature& signature : signatures) {
    if (head.size() > signature.offset && head.substr(signature.offset).starts_with(signature.bytes)) {
      const std::string cure = signature.unpack.empty() ? ""
                                                        : fmt::format(", such as: {} {} > text.tsv",
                                                                      signature.unpack, shell_word(path));
      return fmt::format("the file is {}; convert it to plain text{}", signature.name, cure);
    }
  }
  std::array<std::size_t, 4> zeros{};
  for (std::size_t i = 0; i < head.size(); ++i) {
    zeros[i % 4] += head[i] == '\0' ? 1 : 0;
  }
  const std::size_t all = zeros[0] + zeros[1] + zeros[2] + zeros[3];
  if (all < 8 || 10 * all < head.size()) {
    return std::nullopt;  // a stray zero byte is a control character like others
  }
  if (const std::string_view encoding = encoding_by_zeros(zeros); !encoding.empty()) {
    return conversion(encoding, path);
  }
  return fmt::format("the file is binary data ({} of its first {} bytes are zero); give a text file", all,
                     head.size());
}

std::string shell_word(const std::string& path) {
  const std::string word = printable((path.starts_with('-') ? "./" : "") + path);
  const auto plain = [](unsigned char c) {
    return c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           "._-/+,:@%="sv.find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) {
    return word;
  }
  std::string quoted = "'";
  for (const char c : word) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

}  // namespace translator
