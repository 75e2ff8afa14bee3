/// Formatting of tensors, with fmt ("{}") or as a string.
#pragma once

#include <string>

#include <rill/core/tensor.h>

#pragma GCC visibility push(default)

namespace rill {

/// The values in nested brackets, then dtype and shape, e.g. "[[1, 2], [3, 4]] float32 [2, 2]". Dimensions of
/// more than six entries are abbreviated to the first and last three. An undefined tensor is "undefined".
std::string to_string(const Tensor& t);

}  // namespace rill

template <>
struct fmt::formatter<rill::Tensor> {
  constexpr auto parse(format_parse_context& ctx) { return ctx.begin(); }
  [[gnu::visibility("default")]] auto format(const rill::Tensor& t, format_context& ctx) const
      -> format_context::iterator;
};

#pragma GCC visibility pop
