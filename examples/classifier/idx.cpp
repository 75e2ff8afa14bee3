#include <classifier/idx.h>

#include <algorithm>
#include <memory>

#include <zlib.h>

#include <rill/core/error.h>

namespace classifier {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{4} << 30;

/// Reads through zlib, which reads uncompressed files too.
class IdxReader {
 public:
  explicit IdxReader(const std::filesystem::path& path)
      : name_(path.string()), file_(gzopen(path.c_str(), "rb")) {
    rill::check(file_ != nullptr, "{}: the file cannot be read", name_);
  }

  /// Fills `to` or throws.
  void read(std::uint8_t* to, std::size_t bytes) {
    while (bytes > 0) {
      const auto part = static_cast<unsigned>(std::min<std::size_t>(bytes, 1 << 20));
      const int got = gzread(file_.get(), to, part);
      check_state(got);
      rill::check(got > 0, "{}: the file ends {} bytes early; fetch it again", name_, bytes);
      to += got;
      bytes -= static_cast<std::size_t>(got);
    }
  }

  std::uint32_t number() {
    std::uint8_t b[4];
    read(b, 4);
    return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
  }

  void expect_end() {
    std::uint8_t more;
    const int got = gzread(file_.get(), &more, 1);
    check_state(got);
    rill::check(got == 0, "{}: the file is longer than its sizes say", name_);
  }

  const std::string& name() const { return name_; }

 private:
  void check_state(int got) {
    if (got >= 0) return;
    int code = 0;
    const char* text = gzerror(file_.get(), &code);
    rill::fail("{}: damaged: {}", name_, text);
  }

  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  std::string name_;
  std::unique_ptr<std::remove_pointer_t<gzFile>, Close> file_;
};

}  // namespace

Idx read_idx(const std::filesystem::path& path) {
  rill::check(std::filesystem::is_regular_file(path), "{}: no such file", path.string());
  IdxReader reader(path);
  const std::uint32_t magic = reader.number();
  const std::uint32_t type = magic >> 8, dims = magic & 0xff;
  rill::check(magic >> 16 == 0 && dims >= 1 && dims <= 8, "{}: not an IDX file (it begins with {:#010x})",
              reader.name(), magic);
  rill::check(type == 8, "{}: elements of type {:#x}; only unsigned bytes (0x8) are read", reader.name(),
              type);
  Idx out;
  std::uint64_t total = 1;
  for (std::uint32_t d = 0; d < dims; ++d) {
    const std::uint32_t size = reader.number();
    out.sizes.push_back(size);
    total = size == 0 ? 0 : total > most_bytes / size ? most_bytes + 1 : total * size;
    rill::check(total <= most_bytes, "{}: more than {} bytes", reader.name(), most_bytes);
  }
  // The sizes may be wrong, so memory grows with the bytes actually read.
  constexpr std::uint64_t step = std::uint64_t{16} << 20;
  while (out.bytes.size() < total) {
    const std::size_t have = out.bytes.size();
    const auto part = static_cast<std::size_t>(std::min(step, total - have));
    out.bytes.resize(have + part);
    reader.read(out.bytes.data() + have, part);
  }
  reader.expect_end();
  return out;
}

}  // namespace classifier
