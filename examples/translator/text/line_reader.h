/// Reading text files line by line. Whatever a user passes, a file that is no text is an error with the
/// remedy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <translator/text/byte_source.h>

namespace translator {

/// The most that a reader accepts, so that no file can exhaust the memory.
struct LineLimits {
  std::size_t max_line_bytes = std::size_t{1} << 20;  ///< the rest of a longer line is dropped, see cut()
  std::uint64_t max_bytes = std::uint64_t{4} << 30;   ///< of text, decompressed; more is an Error
};

/// The lines of a file, one after the other, in constant memory.
///
/// Only LF ends a line; the CRs before it are dropped, and a line without an end at the end of the file
/// counts. A UTF-8 byte order mark is dropped, gzip data is decompressed. Refused with an Error that names
/// the kind of file and how to convert it: UTF-16 and UTF-32 (with or without a mark), other compressed and
/// binary formats, lines that end in CR alone, and what ByteSource refuses.
class LineReader {
 public:
  /// Opens a file. Throws rill::Error as above.
  explicit LineReader(const std::string& path, const LineLimits& limits = {});

  /// Reads an open file descriptor, such as 0, which stays open; pipes are welcome. `name` is for messages.
  LineReader(int descriptor, const std::string& name, const LineLimits& limits = {});

  /// Puts the next line, without its end, into `line`; false at the end of the file. Throws rill::Error.
  bool next(std::string& line);

  /// The name of the file as it may be printed.
  const std::string& name() const { return source_.name(); }

  /// The number of the line read last, from 1.
  std::uint64_t number() const { return number_; }

  /// Whether that line was longer than max_line_bytes, so that only its beginning was read.
  bool cut() const { return cut_; }

 private:
  void begin();
  bool refill();
  void append(std::string& line, std::size_t bytes);
  void check_ends() const;

  ByteSource source_;
  std::string path_;  // for the commands in messages
  std::size_t max_line_bytes_;
  std::string buffer_;
  std::size_t used_ = 0;  // bytes of buffer_ already read
  std::uint64_t number_ = 0;
  std::uint64_t line_feeds_ = 0;
  std::uint64_t lone_returns_ = 0;  // CRs that no LF follows
  bool return_open_ = false;        // the last byte was a CR
  bool cut_ = false;
};

}  // namespace translator
