/// Reading text files line by line, whatever a user hands over: every odd file is an error that names the cure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace translator {

/// What a reader will take in at most, so that no file can fill the memory.
struct LineLimits {
  std::size_t max_line_bytes = std::size_t{1} << 20;  ///< The rest of a longer line is dropped, see cut().
  std::uint64_t max_bytes = std::uint64_t{4} << 30;   ///< Of text, after unpacking; more is an Error.
};

/// The lines of a file, one after the other, in constant memory.
///
/// Only LF ends a line; the CRs before it are dropped, and a line without an end at the end of the file counts. A UTF-8
/// byte order mark is dropped, gzip is recognised by its first two bytes and unpacked. Refused with an Error that says
/// what the file is and how to convert it: UTF-16 and UTF-32 (with or without a mark), other packers and binary
/// formats, lines that end in CR alone, directories, pipes, devices, missing and unreadable files, damaged gzip data, a
/// file that shrinks while it is read.
class LineReader {
 public:
  /// Opens a file. Throws rill::Error as above.
  explicit LineReader(const std::string& path, const LineLimits& limits = {});

  /// Reads an open file descriptor, such as 0, which stays open; pipes are welcome. `name` is for messages.
  LineReader(int descriptor, const std::string& name, const LineLimits& limits = {});

  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;
  ~LineReader();

  /// Puts the next line, without its end, into `line`; false at the end of the file. Throws rill::Error.
  bool next(std::string& line);

  /// The number of the line that next() gave last, from 1.
  std::uint64_t number() const;

  /// Whether that line was longer than max_line_bytes, and `line` holds its beginning only.
  bool cut() const;

 private:
  class Source;  // bytes, unpacked
  class State;
  std::unique_ptr<State> state_;
};

/// A path as a word of a shell command: quoted if need be, "./" before a leading dash.
std::string shell_word(const std::string& path);

}  // namespace translator
