/// The bytes of a text file, decompressed if it is gzip data.
#pragma once

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace translator {

/// Reads a regular file or an open descriptor; gzip data, known by its first two bytes, is decompressed.
///
/// Every function throws rill::Error naming the file: missing, unreadable, not a regular file, damaged gzip
/// data, a decompression bomb, more than `max_bytes` bytes of text, a file that shrinks while it is read.
class ByteSource {
 public:
  ByteSource(const std::string& path, std::uint64_t max_bytes);

  /// Reads a descriptor, which stays open; `name` is for messages.
  ByteSource(int descriptor, const std::string& name, std::uint64_t max_bytes);

  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  ~ByteSource();

  /// The name as it may be printed.
  const std::string& name() const { return name_; }

  /// Appends the next bytes to `out`, as soon as there are any; false at the end.
  bool read(std::string& out);

 private:
  void begin();
  void fill();
  bool copy(std::string& out);
  bool decompress(std::string& out);
  bool begin_member();
  void refuse_bomb() const;

  static constexpr std::size_t chunk = std::size_t{1} << 16;

  int descriptor_;
  bool owned_ = false;
  std::string name_;
  std::uint64_t max_bytes_;
  std::uint64_t size_ = 0;       // of the file when it was opened
  std::uint64_t bytes_in_ = 0;   // read from the file
  std::uint64_t bytes_out_ = 0;  // of text
  std::size_t filled_ = 0;       // bytes in raw_
  std::size_t used_ = 0;         // of these, decompressed
  bool ended_ = false;
  bool compressed_ = false;
  bool member_ended_ = false;
  z_stream stream_{};
  std::array<char, chunk> raw_;
  std::array<char, chunk> decompressed_;
};

}  // namespace translator
