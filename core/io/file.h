/// Files that are never half written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace rill {

/// A file that appears as a whole or not at all.
///
/// The bytes go to a hidden file in the same folder, which takes the place of the old file at commit(), after
/// it reached the disk. Without commit() (an exception, a full disk) the old file stays as it was and the
/// hidden one is removed. A symbolic link stays a link: what it points to is replaced. Every function throws
/// Error naming the file and the system's reason.
class AtomicFile {
 public:
  /// Begins to write; the path must not name a directory, device or pipe.
  explicit AtomicFile(const std::filesystem::path& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  /// Appends bytes.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  /// Sends what was written to the disk; for several files that change together, before the first commit().
  void sync();
  /// Makes what was written the file. Nothing can be written after it.
  void commit();

 private:
  [[noreturn]] void fail(const char* what, int error) const;

  std::filesystem::path target_;  // with links resolved
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// Makes `bytes` the contents of the file `path`, as a whole or not at all (see AtomicFile).
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

/// Sends on what was printed to standard output; throws Error when it could not be written (a full disk, a
/// closed descriptor). For the end of a program: a result that is lost is no success.
void flush_stdout();

/// The contents of a regular file of at most `max_bytes` bytes. Throws Error naming the file: missing,
/// unreadable, not a regular file, too large.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes);

}  // namespace rill

#pragma GCC visibility pop
