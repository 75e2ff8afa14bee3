/// Strided tensors viewed as blocks [outer, size, inner] or as rows, for ops along dimensions. Internal to
/// ops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include <rill/core/autograd.h>
#include <rill/core/ops.h>
#include <rill/core/parallel.h>

namespace rill::detail {

/// Elements per chunk for parallel_for, about 10 microseconds.
constexpr std::int64_t grain_elements = 16384;

/// parallel_for over rows of `size` elements each.
template <class F>
void parallel_rows(std::int64_t rows, std::int64_t size, F&& f) {
  parallel_for(rows, std::max<std::int64_t>(1, grain_elements / std::max<std::int64_t>(size, 1)),
               std::forward<F>(f));
}

/// A set of dimensions of one tensor.
class DimSet {
 public:
  /// The given dims, or all if none is given; throws "op: …" for a dim out of range or a duplicate.
  DimSet(const char* op, const Dims& dims, int rank);
  DimSet(const char* op, std::int64_t dim, int rank) : DimSet(op, Dims{dim}, rank) {}

  bool has(int dim) const noexcept { return bits_ >> dim & 1; }
  /// Whether they are the last dimensions.
  bool are_last(int rank) const noexcept;
  /// The shape of x after reducing these dims.
  Shape reduced(const Shape& x, bool keepdim) const;
  /// The number of elements of x reduced to one.
  std::int64_t count(const Shape& x) const;

 private:
  std::uint32_t bits_ = 0;
};

/// A tensor viewed as [outer, size, inner]: the dimensions before, in and after a group, each with one
/// stride.
struct Blocks {
  std::int64_t outer, size, inner;
  std::int64_t outer_stride, stride, inner_stride;
};

/// x as blocks around the dimensions first … last - 1; nullopt if a part needs more than one stride.
std::optional<Blocks> blocks_of(const Shape& shape, const Strides& strides, int first, int last) noexcept;

/// x as blocks whose innermost elements are contiguous: x itself if its layout allows it, a copy otherwise.
struct BlockedTensor {
  Tensor data;
  Blocks blocks;
};
BlockedTensor blocked(const Tensor& x, int first, int last);

/// x with the dimensions of a set moved last, as `count` rows of `size` contiguous elements, in the order of
/// x's other dimensions. x itself if its layout allows it, a copy otherwise.
class Rows {
 public:
  Rows(const Tensor& x, DimSet dims);

  std::int64_t count() const noexcept { return blocks_.outer; }
  std::int64_t size() const noexcept { return blocks_.size; }
  /// The distance between rows.
  std::int64_t stride() const noexcept { return blocks_.outer_stride; }
  const Tensor& data() const noexcept { return data_; }
  template <class T>
  const T* row(std::int64_t i) const noexcept {
    return raw<const T>(data_) + i * stride();
  }

 private:
  Tensor data_;
  Blocks blocks_;
};

/// Calls f(i, row) for each row.
template <class T, class F>
void each_row(const Rows& rows, const F& f) {
  parallel_rows(rows.count(), rows.size(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(i, rows.row<T>(i));
  });
}

/// The permutation that moves the dimensions of a set last.
Dims moved_last(DimSet dims, int rank);
/// A contiguous tensor of rows, as in Rows(x, dims), viewed in the shape of x.
Tensor unmoved(const Tensor& rows, DimSet dims, const Shape& shape);

/// Calls write(T* to, T beta), which computes `to` = beta · to + gradient for contiguous `to`, on the
/// gradient itself if that is contiguous and on a buffer otherwise.
template <class T, class F>
void write_contiguous(const Slot& slot, F&& write) {
  if (slot.to.is_contiguous()) return write(raw<T>(slot.to), static_cast<T>(slot.beta));
  const Tensor fresh = empty(slot.to.shape(), slot.to.dtype());
  write(raw<T>(fresh), T(0));
  Tensor to = slot.to;
  if (slot.beta == 0) {
    to.copy_(fresh);
  } else {
    to.add_(fresh);
  }
}

/// The same for a gradient computed in the order of Rows(x, dims).
template <class T, class F>
void write_rows(GradRef d, DimSet dims, F&& write) {
  if (dims.are_last(d.shape().size())) return write_contiguous<T>(d.slot(), std::forward<F>(write));
  const Tensor fresh = empty(d.shape(), d.dtype());
  write(raw<T>(fresh), T(0));
  d.give(unmoved(fresh, dims, d.shape()));
}

/// Adds the gradient of an op that selects k different elements of each row of its input, as in Rows(x,
/// dims): dy [rows, k], contiguous, at the indices [rows, k], and 0 elsewhere.
template <class T>
void give_chosen(GradRef d, DimSet dims, std::int64_t k, const std::int64_t* indices, const T* dy) {
  const Shape shape = d.shape();
  const std::int64_t size = dims.count(shape);
  const Tensor dx = zeros(shape, d.dtype());
  const std::int64_t chosen = size == 0 ? 0 : dx.numel() / size * k;
  for (std::int64_t i = 0; i < chosen; ++i) raw<T>(dx)[i / k * size + indices[i]] = dy[i];
  d.give(unmoved(dx, dims, shape));
}

}  // namespace rill::detail
