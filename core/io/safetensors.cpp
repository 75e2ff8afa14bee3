#include <rill/core/io/safetensors.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <system_error>

#include <rill/core/io/file.h>
#include <rill/core/io/safetensors_header.h>

namespace rill {
namespace {

using detail::Quoted;
using detail::SafetensorsEntry;
using detail::SafetensorsHeader;

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

// --- reading

/// A random-access byte source: a file or a buffer.
struct Source {
  std::string label;
  std::uint64_t size = 0;
  std::function<void(std::uint64_t at, std::span<std::byte> to)> read;
};

std::string read_header_text(const Source& source) {
  check(source.size >= 8, "safetensors: {}: {} bytes are too short for a header", source.label, source.size);
  std::array<std::byte, 8> length_bytes{};
  source.read(0, length_bytes);
  const auto length = std::bit_cast<std::uint64_t>(length_bytes);
  check(length <= source.size - 8,
        "safetensors: {}: the header length is {} bytes, but only {} follow; the file is truncated or not a "
        "safetensors file",
        source.label, length, source.size - 8);
  check(length <= detail::max_safetensors_header,
        "safetensors: {}: the header has {} bytes; the maximum is {}", source.label, length,
        detail::max_safetensors_header);
  std::string text(length, '\0');
  source.read(8, std::as_writable_bytes(std::span(text)));
  return text;
}

void check_booleans(const SafetensorsEntry& e, std::span<const std::byte> bytes, const std::string& label) {
  const auto bad = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
  if (bad != bytes.end()) {
    fail("safetensors: {}: tensor {}: element {} is {}; a BOOL must be 0 or 1", label, Quoted{e.name},
         bad - bytes.begin(), static_cast<int>(*bad));
  }
}

SafetensorsFile read_all(const Source& source) {
  const std::string text = read_header_text(source);
  const std::uint64_t data = 8 + text.size();
  SafetensorsHeader header = detail::parse_safetensors_header(text, source.size - data, source.label);
  SafetensorsFile file{.tensors = {}, .metadata = std::move(header.metadata)};
  file.tensors.reserve(header.entries.size());
  for (SafetensorsEntry& e : header.entries) {
    Tensor t = empty(e.shape, e.dtype);
    const std::span bytes(t.impl().storage->data(), static_cast<std::size_t>(e.end - e.begin));
    source.read(data + e.begin, bytes);
    if (e.dtype == boolean) check_booleans(e, bytes, source.label);
    file.tensors.emplace_back(std::move(e.name), std::move(t));
  }
  return file;
}

// --- writing

/// The indices of the tensors in the order of their data in the file: wide dtypes first, for alignment.
std::vector<std::size_t> data_order(const NamedTensors& tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return item_size(tensors[a].second.dtype()) > item_size(tensors[b].second.dtype());
  });
  return order;
}

/// Passes the bytes of the file to `write` in chunks.
void write_all(const NamedTensors& tensors, const std::map<std::string, std::string>& metadata,
               const std::function<void(std::span<const std::byte>)>& write) {
  SafetensorsHeader header{.entries = std::vector<SafetensorsEntry>(tensors.size()), .metadata = metadata};
  const std::vector<std::size_t> order = data_order(tensors);
  std::uint64_t at = 0;
  for (std::size_t i : order) {
    const auto& [name, t] = tensors[i];
    const std::uint64_t begin = at;
    at += static_cast<std::uint64_t>(t.numel()) * item_size(t.dtype());
    header.entries[i] = {.name = name, .dtype = t.dtype(), .shape = t.shape(), .begin = begin, .end = at};
  }
  const std::string text = detail::format_safetensors_header(header);
  const auto length = std::bit_cast<std::array<std::byte, 8>>(static_cast<std::uint64_t>(text.size()));
  write(length);
  write(std::as_bytes(std::span(text)));
  for (std::size_t i : order) {
    const Tensor row_major = tensors[i].second.detach().contiguous();
    visit(row_major.dtype(), [&]<class T>(Type<T>) { write(std::as_bytes(row_major.span<T>())); });
  }
}

void check_defined(const NamedTensors& tensors) {
  for (const auto& [name, t] : tensors)
    check(t.defined(), "safetensors: tensor {} is undefined", Quoted{name});
}

}  // namespace

const Tensor* SafetensorsFile::find(std::string_view name) const noexcept {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& item) { return item.first == name; });
  return found == tensors.end() ? nullptr : &found->second;
}

const Tensor& SafetensorsFile::at(std::string_view name) const {
  if (const Tensor* t = find(name)) return *t;
  constexpr std::size_t max_names = 50;
  std::string names;
  for (std::size_t i = 0; i < std::min(tensors.size(), max_names); ++i) {
    names += (i == 0 ? "" : ", ") + fmt::to_string(Quoted{tensors[i].first});
  }
  if (tensors.size() > max_names) names += fmt::format(" and {} more", tensors.size() - max_names);
  fail("safetensors: there is no tensor {}; the file has {}", Quoted{name}, names.empty() ? "none" : names);
}

void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata) {
  AtomicFile file(path);
  write_safetensors(file, tensors, metadata);
  file.commit();
}

void write_safetensors(AtomicFile& file, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata) {
  check_defined(tensors);
  write_all(tensors, metadata, [&](std::span<const std::byte> bytes) { file.write(bytes); });
}

std::vector<std::byte> safetensors_to_bytes(const NamedTensors& tensors,
                                            const std::map<std::string, std::string>& metadata) {
  check_defined(tensors);
  std::vector<std::byte> all;
  write_all(tensors, metadata,
            [&](std::span<const std::byte> bytes) { all.insert(all.end(), bytes.begin(), bytes.end()); });
  return all;
}

SafetensorsFile load_safetensors(const std::filesystem::path& path) {
  const std::string label = fmt::format("'{}'", path.string());
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  check(std::filesystem::exists(status), "safetensors: {}: {}", label,
        error ? error.message() : "no such file");
  check(std::filesystem::is_regular_file(status), "safetensors: {}: not a regular file", label);
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  check(stream.is_open(), "safetensors: {}: cannot open: {}", label, std::strerror(errno));
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  check(!error, "safetensors: {}: {}", label, error.message());
  return read_all({.label = label, .size = size, .read = [&](std::uint64_t at, std::span<std::byte> to) {
                     stream.seekg(static_cast<std::streamoff>(at));
                     stream.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size()));
                     check(stream.good(), "safetensors: {}: cannot read {} bytes at offset {}", label,
                           to.size(), at);
                   }});
}

SafetensorsFile safetensors_from_bytes(std::span<const std::byte> bytes, const std::string& label) {
  return read_all(
      {.label = label, .size = bytes.size(), .read = [&](std::uint64_t at, std::span<std::byte> to) {
         std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), to.size(), to.begin());
       }});
}

}  // namespace rill
