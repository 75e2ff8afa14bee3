/// Parsing and formatting of the JSON header of a safetensors file. Internal: use safetensors.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <rill/core/dtype.h>
#include <rill/core/shape.h>

namespace rill::detail {

/// Maximum length of a header in bytes, as in the reference implementation.
inline constexpr std::uint64_t max_safetensors_header = 100'000'000;

/// The header entry of a tensor.
struct SafetensorsEntry {
  std::string name;
  DType dtype = float32;
  Shape shape;
  std::uint64_t begin = 0;  ///< in bytes from the end of the header
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
};

/// Parses a header that is followed by `data_bytes` bytes. Throws Error naming `label` unless it is valid
/// strict JSON and its tensors cover those bytes exactly.
SafetensorsHeader parse_safetensors_header(const std::string& text, std::uint64_t data_bytes,
                                           const std::string& label);

/// The text of a header, padded with spaces to a multiple of 8 bytes. Throws if a name is duplicate, reserved
/// or not UTF-8, or if the header is too long.
std::string format_safetensors_header(const SafetensorsHeader& header);

/// Formats a name quoted, escaped and truncated, since a malformed file may have arbitrary names.
struct Quoted {
  std::string_view text;
};

}  // namespace rill::detail

template <>
struct fmt::formatter<rill::detail::Quoted> {
  constexpr auto parse(format_parse_context& ctx) { return ctx.begin(); }
  template <class Context>
  auto format(const rill::detail::Quoted& quoted, Context& ctx) const {
    constexpr std::size_t max_length = 80;
    return fmt::format_to(ctx.out(), "{:?}{}", quoted.text.substr(0, max_length),
                          quoted.text.size() > max_length ? "..." : "");
  }
};
