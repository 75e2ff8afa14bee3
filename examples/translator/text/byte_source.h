/// The bytes of a text file, unpacked if they are packed.
#pragma once

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace translator {

/// Reads a regular file or an open descriptor; gzip data, known by its first two bytes, is unpacked on the
/// way.
///
/// Every function throws rill::Error naming the file: missing, unreadable, no regular file, damaged gzip
/// data, data that unpacks without end, more than `max_bytes` bytes of text, a file that shrinks while it is
/// read.
class ByteSource {
 public:
  ByteSource(const std::string& path, std::uint64_t max_bytes);

  /// The descriptor stays open; `name` is for messages.
  ByteSource(int descriptor, const std::string& name, std::uint64_t max_bytes);

  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  ~ByteSource();

  /// The name, fit for messages.
  const std::string& name() const { return name_; }

  /// Appends some bytes to `out`, as soon as there are any; false at the end.
  bool read(std::string& out);

 private:
  void begin();
  void fill();
  bool copy(std::string& out);
  bool unpack(std::string& out);
  bool begin_member();
  void refuse_bomb() const;

  static constexpr std::size_t chunk = std::size_t{1} << 16;

  int descriptor_;
  bool owned_ = false;
  std::string name_;
  std::uint64_t max_bytes_;
  std::uint64_t size_ = 0;       // what the file must hold at least
  std::uint64_t taken_in_ = 0;   // bytes of the file
  std::uint64_t given_out_ = 0;  // bytes of text
  std::size_t filled_ = 0;       // bytes in raw_,
  std::size_t used_ = 0;         // and how many of them are unpacked
  bool ended_ = false;
  bool packed_ = false;
  bool member_ended_ = false;
  z_stream stream_{};
  std::array<char, chunk> raw_;
  std::array<char, chunk> unpacked_;
};

}  // namespace translator
