/// The JSON header of a safetensors file, read with every check and written. Internal: use safetensors.h.
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
    100'000'000;  ///< in bytes: what the format's own library reads

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

/// Reads the text of a header that `data_bytes` bytes follow. Throws Error beginning with `label` unless it
/// is strict JSON of the format and its tensors cover those bytes exactly.
SafetensorsHeader parse_safetensors_header(const std::string& text, std::uint64_t data_bytes,
                                           const std::string& label);

/// The text of a header, filled with spaces to a multiple of 8 bytes. Throws when a name comes twice, is
/// reserved or is not UTF-8, or the whole is too long.
std::string format_safetensors_header(const SafetensorsHeader& header);

/// A name that a message shows in quotes, cut off when long: a bad file may have names of any length and
/// content.
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
