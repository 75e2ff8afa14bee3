/// Formatting of tensors with fmt ("{}") or as a string.
#pragma once

#include <string>

#include <rill/core/tensor.h>

#pragma GCC visibility push(default)

namespace rill {

/// Formats the elements in nested brackets, the dtype and the shape: "[[1, 2], [3, 4]] float32 [2, 2]".
/// Dimensions longer than six show their first and last three entries. Undefined tensors give "undefined".
std::string to_string(const Tensor& t);

}  // namespace rill

template <>
struct fmt::formatter<rill::Tensor> {
  constexpr auto parse(format_parse_context& ctx) { return ctx.begin(); }
  [[gnu::visibility("default")]] auto format(const rill::Tensor& t, format_context& ctx) const
      -> format_context::iterator;
};

#pragma GCC visibility pop
