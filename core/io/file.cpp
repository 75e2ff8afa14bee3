#include <rill/core/io/file.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <rill/core/error.h>

namespace rill {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

/// Follows symbolic links; the last target need not exist.
std::filesystem::path resolve(std::filesystem::path path) {
  check(!path.filename().empty(), "write: '{}' has no file name", path.string());
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(path, error); ++links) {
    check(links < 40, "write {}: too many levels of symbolic links", path.string());
    path = path.parent_path() / std::filesystem::read_symlink(path);  // operator/ handles an absolute target
  }
  return path;
}

/// A name in the same directory that no other process or thread uses.
std::filesystem::path temporary_name(const std::filesystem::path& target) {
  static std::atomic<unsigned> counter = 0;
  const std::string base = target.filename().string().substr(0, 200);  // file systems allow 255
  return target.parent_path() / fmt::format(".{}.{}-{}.part", base, ::getpid(), counter++);
}

/// Makes a rename durable by syncing the directory. Failure is ignored: some file systems do not support it.
void sync_directory(const std::filesystem::path& file) {
  const std::filesystem::path directory = file.has_parent_path() ? file.parent_path() : ".";
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fsync(descriptor);
    ::close(descriptor);
  }
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& path) : target_(resolve(path)) {
  struct stat info {};
  const bool exists = ::stat(target_.c_str(), &info) == 0;
  rill::check(!exists || S_ISREG(info.st_mode), "write {}: the path is {}; use the name of a file",
              target_.string(), S_ISDIR(info.st_mode) ? "a directory" : "a device or pipe");
  do {  // a killed process with the same id may have left its temporary file
    temporary_ = temporary_name(target_);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) {
    const int error = errno;
    rill::fail("write {}: cannot create a file there: {}", target_.string(), reason(error));
  }
  if (exists) {
    ::fchmod(descriptor_, info.st_mode & 0777);  // keep the permissions of the old file
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
  }
}

void AtomicFile::fail(const char* what, int error) const {
  rill::fail("write {}: {}: {}; the file is unchanged", target_.string(), what, reason(error));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  rill::check(descriptor_ >= 0, "write {}: the file is already committed", target_.string());
  while (!bytes.empty()) {
    constexpr std::size_t max_write = std::size_t{1} << 30;  // Linux writes at most 2 GiB at once
    const ssize_t n = ::write(descriptor_, bytes.data(), std::min(bytes.size(), max_write));
    if (n < 0) {
      if (errno != EINTR) {
        fail("write failed", errno);
      }
      continue;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void AtomicFile::sync() {
  rill::check(descriptor_ >= 0, "write {}: the file is already committed", target_.string());
  if (::fsync(descriptor_) != 0 && errno != EINVAL) {
    fail("sync failed", errno);
  }
}

void AtomicFile::commit() {
  sync();
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    fail("write failed", errno);
  }
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    fail("rename failed", errno);
  }
  temporary_.clear();
  sync_directory(target_);
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

void flush_stdout() {
  errno = 0;
  check(std::fflush(stdout) == 0 && std::ferror(stdout) == 0, "standard output: write failed: {}",
        reason(errno != 0 ? errno : EIO));
}

std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  // O_NONBLOCK, because opening a pipe would wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    fail("read {}: {}", path.string(), reason(errno));
  }
  struct Closer {
    int descriptor;
    ~Closer() { ::close(descriptor); }
  } const closer{descriptor};
  struct stat info {};
  check(::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode), "read {}: not a regular file",
        path.string());
  std::string bytes;
  std::size_t filled = 0;
  for (ssize_t n = 1; n != 0;) {
    check(filled <= max_bytes, "read {}: the file has more than {} bytes", path.string(), max_bytes);
    // One byte more than the size of the file, so that a single read() usually reaches its end.
    const auto size = static_cast<std::uint64_t>(std::max<off_t>(info.st_size, 0));
    bytes.resize(
        std::max<std::size_t>(filled + 4096, static_cast<std::size_t>(std::min(size, max_bytes)) + 1));
    n = ::read(descriptor, bytes.data() + filled, bytes.size() - filled);
    if (n < 0) {
      check(errno == EINTR, "read {}: {}", path.string(), reason(errno));
      continue;
    }
    filled += static_cast<std::size_t>(n);
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace rill
