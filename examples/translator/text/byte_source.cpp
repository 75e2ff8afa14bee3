#include <translator/text/byte_source.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include <rill/core/error.h>
#include <translator/text/file_kind.h>
#include <translator/text/tokenizer.h>

namespace translator {
namespace {

std::string system_message(int error) { return std::generic_category().message(error); }

/// The kind of a file that is not regular.
std::string_view kind_of(mode_t mode) {
  return S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

/// Opens a regular file for reading; sets its size.
int open_regular(const std::string& path, const std::string& name, std::uint64_t& size) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  rill::check(descriptor >= 0, "{}: cannot be opened: {}", name, system_message(errno));
  struct stat info {};
  const int error = ::fstat(descriptor, &info) == 0 ? 0 : errno;
  if (error != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    rill::check(error == 0, "{}: cannot be read: {}", name, system_message(error));
    rill::fail("{}: is {}, not a file; give the name of a text file", name, kind_of(info.st_mode));
  }
  size = static_cast<std::uint64_t>(info.st_size);
  return descriptor;
}

}  // namespace

ByteSource::ByteSource(const std::string& path, std::uint64_t max_bytes)
    : name_(printable(path)), max_bytes_(max_bytes) {
  rill::check(!path.empty(), "read: the name of the file is empty");
  descriptor_ = open_regular(path, name_, size_);
  owned_ = true;
}

ByteSource::ByteSource(int descriptor, const std::string& name, std::uint64_t max_bytes)
    : descriptor_(descriptor), name_(printable(name)), max_bytes_(max_bytes) {}

ByteSource::~ByteSource() {
  if (compressed_) {
    inflateEnd(&stream_);
  }
  if (owned_) {
    ::close(descriptor_);
  }
}

bool ByteSource::read(std::string& out) {
  if (bytes_in_ == 0 && !ended_) {
    begin();
  }
  const std::size_t before = out.size();
  while (out.size() == before && (compressed_ ? decompress(out) : copy(out))) {
  }
  bytes_out_ += out.size() - before;
  rill::check(bytes_out_ <= max_bytes_, "{}: more than {} bytes of text; split it", name_, max_bytes_);
  return out.size() > before;
}

/// Reads the first bytes and checks whether they are gzip data.
void ByteSource::begin() {
  fill();
  while (filled_ == 1 && raw_[0] == '\x1f' && !ended_) {  // a pipe may give its bytes one by one
    fill();
  }
  if (is_gzip({raw_.data(), filled_})) {
    constexpr int gzip_only = 15 + 16;  // the largest window, gzip's header
    compressed_ = inflateInit2(&stream_, gzip_only) == Z_OK;
    rill::check(compressed_, "{}: no memory to decompress gzip data", name_);
  }
}

/// Appends bytes of the file to raw_.
void ByteSource::fill() {
  ssize_t n = 0;
  while ((n = ::read(descriptor_, raw_.data() + filled_, raw_.size() - filled_)) < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) {  // a pipe that another process made non-blocking
      pollfd wait{descriptor_, POLLIN, 0};
      ::poll(&wait, 1, -1);
    } else {
      rill::check(errno == EINTR, "{}: cannot be read: {}", name_, system_message(errno));
    }
  }
  ended_ = n == 0;
  filled_ += static_cast<std::size_t>(n);
  bytes_in_ += static_cast<std::uint64_t>(n);
  rill::check(!ended_ || bytes_in_ >= size_, "{}: shrank from {} to {} bytes while it was read", name_, size_,
              bytes_in_);
}

bool ByteSource::copy(std::string& out) {
  if (filled_ == 0 && !ended_) {
    fill();
  }
  out.append(raw_.data(), filled_);
  return std::exchange(filled_, 0) > 0;
}

bool ByteSource::decompress(std::string& out) {
  if (used_ == filled_ && !ended_) {
    used_ = filled_ = 0;
    fill();
  }
  if (ended_) {
    rill::check(member_ended_, "{}: the gzip data ends early; is the file complete?", name_);
    return false;
  }
  if (member_ended_ && !begin_member()) {
    return true;
  }
  stream_.next_in = reinterpret_cast<Bytef*>(raw_.data() + used_);
  stream_.avail_in = static_cast<uInt>(filled_ - used_);
  stream_.next_out = reinterpret_cast<Bytef*>(decompressed_.data());
  stream_.avail_out = static_cast<uInt>(decompressed_.size());
  const int result = inflate(&stream_, Z_NO_FLUSH);
  used_ = filled_ - stream_.avail_in;
  member_ended_ = result == Z_STREAM_END;
  rill::check(member_ended_ || result == Z_OK || result == Z_BUF_ERROR, "{}: the gzip data is damaged ({})",
              name_, stream_.msg != nullptr ? stream_.msg : "no reason known");
  out.append(decompressed_.data(), decompressed_.size() - stream_.avail_out);
  refuse_bomb();
  return true;
}

/// After a member of gzip data may come another, or zeros that fill a block; false for a zero.
bool ByteSource::begin_member() {
  if (raw_[used_] == '\0') {
    ++used_;
    return false;
  }
  rill::check(raw_[used_] == '\x1f', "{}: other data follows the gzip data", name_);
  inflateReset(&stream_);
  member_ended_ = false;
  return true;
}

/// Text compresses to a quarter of its size, rarely to a twentieth; a thousandth is a decompression bomb.
void ByteSource::refuse_bomb() const {
  constexpr std::uint64_t harmless = std::uint64_t{64} << 20;
  constexpr std::uint64_t most = 200;
  rill::check(bytes_out_ < harmless || bytes_out_ / most < bytes_in_,
              "{}: decompresses to more than {} times its size; this is no text", name_, most);
}

}  // namespace translator
