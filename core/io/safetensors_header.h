/// Reading, validating and writing the JSON header of a safetensors file. Internal: use safetensors.h.
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

inline constexpr std::uint64_t max_safetensors_header =
    100'000'000;  ///< in bytes: the limit of the reference implementation

/// One tensor of a header.
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

/// Parses a header that is followed by `data_bytes` bytes. Throws Error starting with `label` unless it is
/// strict JSON of the format and its tensors exactly cover those bytes.
SafetensorsHeader parse_safetensors_header(const std::string& text, std::uint64_t data_bytes,
                                           const std::string& label);

/// The text of a header, padded with spaces to a multiple of 8 bytes. Throws if a name is a duplicate,
/// reserved or not UTF-8, or if the header is too long.
std::string format_safetensors_header(const SafetensorsHeader& header);

/// A name quoted in a message, truncated if long: a bad file may have names of any length and content.
struct Shown {
  std::string_view text;
};

}  // namespace rill::detail

template <>
struct fmt::formatter<rill::detail::Shown> {
  constexpr auto parse(format_parse_context& ctx) { return ctx.begin(); }
  template <class Context>
  auto format(const rill::detail::Shown& shown, Context& ctx) const {
    constexpr std::size_t most = 80;
    return fmt::format_to(ctx.out(), "{:?}{}", shown.text.substr(0, most),
                          shown.text.size() > most ? "..." : "");
  }
};
