#include <rill/core/shape.h>

#include <algorithm>

namespace rill {

void Dims::fail_index(std::int64_t i) const {
  fail("shape: index {} is out of range for {}, which has {} dimensions", i, *this, rank_);
}

std::int64_t numel(const Shape& shape) {
  std::int64_t product = 1;
  bool zero = false;
  for (std::int64_t size : shape) {
    check(size >= 0, "shape: {} has a negative size", shape);
    zero = zero || size == 0;
  }
  if (zero) return 0;
  for (std::int64_t size : shape) {
    check(!__builtin_mul_overflow(product, size, &product), "shape: {} has more than 2^63 - 1 elements",
          shape);
  }
  return product;
}

Strides contiguous_strides(const Shape& shape) noexcept {
  Strides strides = shape;
  // Unsigned, because the other sizes of an empty shape may overflow; such strides address no element.
  std::uint64_t step = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    strides[i] = static_cast<std::int64_t>(step);
    step *= static_cast<std::uint64_t>(std::max<std::int64_t>(shape[i], 1));
  }
  return strides;
}

int wrap_dim(const char* op, std::int64_t dim, int rank) {
  if (dim < -rank || dim >= rank) [[unlikely]] {
    check(rank > 0, "{}: dimension {} of a tensor without dimensions; use unsqueeze(0) to add one", op, dim);
    fail("{}: dimension {} is outside {}..{}", op, dim, -rank, rank - 1);
  }
  return static_cast<int>(dim < 0 ? dim + rank : dim);
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const int rank = std::max(a.size(), b.size());
  Shape out = Shape::filled(rank, 1);
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t x = i <= a.size() ? a[a.size() - i] : 1;
    const std::int64_t y = i <= b.size() ? b[b.size() - i] : 1;
    check(x == y || x == 1 || y == 1,
          "{}: shapes {} and {} do not broadcast (sizes {} and {} at dimension {}); sizes must agree or be 1",
          op, a, b, x, y, -i);
    out[rank - i] = x == 1 ? y : x;
  }
  return out;
}

}  // namespace rill

auto fmt::formatter<rill::Dims>::format(const rill::Dims& dims, format_context& ctx) const
    -> format_context::iterator {
  auto out = fmt::format_to(ctx.out(), "[");
  for (int i = 0; i < dims.size(); ++i) out = fmt::format_to(out, "{}{}", i == 0 ? "" : ", ", dims[i]);
  return fmt::format_to(out, "]");
}
