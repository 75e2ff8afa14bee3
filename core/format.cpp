#include <rill/core/format.h>

#include <iterator>

namespace rill {
namespace {

constexpr std::int64_t edge = 3;  // entries shown at each end of a long dimension

void append(std::string& out, const Tensor& t) {
  if (t.dim() == 0) {
    visit(t.dtype(), [&]<class T>(Type<T>) {
      if constexpr (std::is_floating_point_v<T>) {
        fmt::format_to(std::back_inserter(out), "{:.6g}", t.item<T>());
      } else {
        fmt::format_to(std::back_inserter(out), "{}", t.item<T>());
      }
    });
    return;
  }
  const std::int64_t n = t.size(0);
  out += '[';
  for (std::int64_t i = 0; i < n; ++i) {
    if (i > 0) out += ", ";
    if (n > 2 * edge && i == edge) {
      out += "..., ";
      i = n - edge;
    }
    append(out, t.select(0, i));
  }
  out += ']';
}

}  // namespace

std::string to_string(const Tensor& t) {
  if (!t.defined()) return "undefined";
  std::string out;
  append(out, t.detach());
  fmt::format_to(std::back_inserter(out), " {} {}", name(t.dtype()), t.shape());
  return out;
}

}  // namespace rill

auto fmt::formatter<rill::Tensor>::format(const rill::Tensor& t, format_context& ctx) const
    -> format_context::iterator {
  return fmt::format_to(ctx.out(), "{}", rill::to_string(t));
}
