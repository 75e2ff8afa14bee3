/// Atomic file writes and checked reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace rill {

/// A file that is written completely or not at all.
///
/// The bytes go to a hidden file in the same folder, which commit() syncs to disk and renames to the target.
/// Without commit() (an exception, a full disk) the old file remains unchanged and the hidden one is removed.
/// A symbolic link is preserved; its target is replaced. Every function throws Error naming the file and the
/// system's reason.
class AtomicFile {
 public:
  /// Creates the hidden file; the path must not be a directory, device or pipe.
  explicit AtomicFile(const std::filesystem::path& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  /// Appends bytes.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  /// Syncs the written bytes to disk; when several files change together, call it for each before the first
  /// commit().
  void sync();
  /// Replaces the target. Nothing can be written afterwards.
  void commit();

 private:
  [[noreturn]] void fail(const char* what, int error) const;

  std::filesystem::path target_;  // with links resolved
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// Writes `bytes` as the contents of the file `path`, completely or not at all (see AtomicFile).
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

/// Flushes standard output; throws Error if it could not be written (a full disk, a closed descriptor). Call
/// it at the end of a program, so that lost output is not reported as success.
void flush_stdout();

/// The contents of a regular file of at most `max_bytes` bytes. Throws Error naming the file: missing,
/// unreadable, not a regular file, too large.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes);

}  // namespace rill

#pragma GCC visibility pop
