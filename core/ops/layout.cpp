#include <rill/core/ops/layout.h>

namespace rill::detail {

DimSet::DimSet(const char* op, const Dims& dims, int rank) {
  if (dims.empty()) bits_ = (1u << rank) - 1;
  for (std::int64_t dim : dims) {
    const int at = wrap_dim(op, dim, std::max(rank, 1));
    check(!has(at), "{}: dimension {} is named twice in {}", op, dim, dims);
    bits_ |= 1u << at;
  }
}

bool DimSet::are_last(int rank) const noexcept {
  int kept = 0;
  while (kept < rank && !has(kept)) ++kept;
  for (int d = kept; d < rank; ++d) {
    if (!has(d)) return false;
  }
  return true;
}

Shape DimSet::reduced(const Shape& x, bool keepdim) const {
  Shape shape;
  for (int d = 0; d < x.size(); ++d) {
    if (!has(d)) {
      shape.push_back(x[d]);
    } else if (keepdim) {
      shape.push_back(1);
    }
  }
  return shape;
}

std::int64_t DimSet::count(const Shape& x) const {
  Shape reduced = x;
  for (int d = 0; d < x.size(); ++d) {
    if (!has(d)) reduced[d] = 1;
  }
  return numel(reduced);
}

namespace {

struct Run {
  std::int64_t size = 1;
  std::int64_t stride = 1;
};

/// The product; it overflows only for a tensor without elements, for which it is not used.
std::int64_t wrapping_mul(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

/// Dimensions first … last - 1 merged into one, if a single stride covers them.
std::optional<Run> joined(const Shape& shape, const Strides& strides, int first, int last) noexcept {
  Run run;
  for (int d = first; d < last; ++d) {
    if (shape[d] == 0) return Run{0, 0};
  }
  for (int d = last - 1; d >= first; --d) {
    if (shape[d] == 1) continue;
    if (run.size == 1) {
      run.stride = strides[d];
    } else if (strides[d] != wrapping_mul(run.stride, run.size)) {
      return std::nullopt;
    }
    run.size = wrapping_mul(run.size, shape[d]);
  }
  return run;
}

}  // namespace

std::optional<Blocks> blocks_of(const Shape& shape, const Strides& strides, int first, int last) noexcept {
  const auto outer = joined(shape, strides, 0, first);
  const auto group = joined(shape, strides, first, last);
  const auto inner = joined(shape, strides, last, shape.size());
  if (!outer || !group || !inner) return std::nullopt;
  return Blocks{outer->size, group->size, inner->size, outer->stride, group->stride, inner->stride};
}

BlockedTensor blocked(const Tensor& x, int first, int last) {
  const auto b = blocks_of(x.shape(), x.strides(), first, last);
  if (b && (b->inner == 1 ? b->size <= 1 || b->stride == 1 : b->inner_stride == 1)) return {x, *b};
  const Tensor copy = x.detach().contiguous();
  return {copy, *blocks_of(copy.shape(), copy.strides(), first, last)};
}

Dims moved_last(DimSet dims, int rank) {
  Dims order;
  for (bool last : {false, true}) {
    for (int d = 0; d < rank; ++d) {
      if (dims.has(d) == last) order.push_back(d);
    }
  }
  return order;
}

Rows::Rows(const Tensor& x, DimSet dims) {
  const int rank = x.dim();
  int kept = 0;
  for (int d = 0; d < rank; ++d) kept += dims.has(d) ? 0 : 1;
  const Tensor moved = dims.are_last(rank) ? x : x.detach().permute(moved_last(dims, rank));
  auto [data, blocks] = blocked(moved, kept, rank);
  data_ = std::move(data);
  blocks_ = blocks;
}

Tensor unmoved(const Tensor& rows, DimSet dims, const Shape& shape) {
  const Dims order = moved_last(dims, shape.size());
  Shape moved_shape = order;
  Dims back = order;
  for (int i = 0; i < order.size(); ++i) {
    moved_shape[i] = shape[order[i]];
    back[order[i]] = i;
  }
  return rows.reshape(moved_shape).permute(back);
}

}  // namespace rill::detail
