/// Reading of files and atomic writing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace rill {

/// Writes a file atomically: it is replaced completely or not at all.
///
/// The bytes go to a hidden temporary file in the same directory. commit() syncs it to disk and renames it
/// over the target. Without commit() (after an exception or on a full disk) the old file is unchanged and the
/// temporary one is removed. Symbolic links are followed. Every function throws Error naming the file and the
/// system error.
class AtomicFile {
 public:
  /// Creates the temporary file. `path` must not be an existing directory, device or pipe.
  explicit AtomicFile(const std::filesystem::path& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  /// Appends bytes.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  /// Syncs the written bytes to disk. To change several files together, sync all before the first commit().
  void sync();
  /// Syncs and replaces the target. No further writes are allowed.
  void commit();

 private:
  [[noreturn]] void fail(const char* what, int error) const;

  std::filesystem::path target_;  // with links resolved
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// Replaces the contents of the file `path` atomically (see AtomicFile).
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

/// Flushes standard output; throws Error if that or an earlier write failed (a full disk, a closed
/// descriptor). Call it at the end of a program, so that lost output is not reported as success.
void flush_stdout();

/// The contents of a regular file. Throws Error naming the file if it is missing, unreadable, not a regular
/// file or larger than `max_bytes`.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes);

}  // namespace rill

#pragma GCC visibility pop
