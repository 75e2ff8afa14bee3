/// Sizes and strides: short lists of 64-bit numbers that live inline.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include <rill/core/error.h>

#pragma GCC visibility push(default)

namespace rill {

/// Up to `max_rank` numbers, one for each dimension; a value without heap memory.
class Dims {
 public:
  static constexpr int max_rank = 8;  ///< most dimensions of a tensor

  Dims() = default;
  // --- from a list; throws for more than max_rank
  Dims(std::initializer_list<std::int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  /// The same of a span.
  explicit Dims(std::span<const std::int64_t> values) {
    check(values.size() <= max_rank, "shape: {} dimensions; the most is {}", values.size(), max_rank);
    for (std::int64_t v : values) values_[static_cast<std::size_t>(rank_++)] = v;
  }
  /// `rank` times `value`.
  static Dims filled(int rank, std::int64_t value) {
    check(rank >= 0 && rank <= max_rank, "shape: {} dimensions; the most is {}", rank, max_rank);
    Dims d;
    d.rank_ = rank;
    for (int i = 0; i < rank; ++i) d[i] = value;
    return d;
  }

  // --- access; size() counts the dimensions
  int size() const noexcept { return rank_; }
  bool empty() const noexcept { return rank_ == 0; }
  std::int64_t& operator[](std::int64_t i) noexcept { return values_[static_cast<std::size_t>(i)]; }
  std::int64_t operator[](std::int64_t i) const noexcept { return values_[static_cast<std::size_t>(i)]; }
  std::int64_t back() const noexcept { return values_[static_cast<std::size_t>(rank_ - 1)]; }
  const std::int64_t* begin() const noexcept { return values_.data(); }
  const std::int64_t* end() const noexcept { return values_.data() + rank_; }

  /// Appends v.
  void push_back(std::int64_t v) { insert(rank_, v); }
  /// Puts v in front of dimension `at`.
  void insert(int at, std::int64_t v) {
    check(rank_ < max_rank, "shape: more than {} dimensions", max_rank);
    for (int i = rank_++; i > at; --i) (*this)[i] = (*this)[i - 1];
    (*this)[at] = v;
  }
  /// Takes dimension `at` out.
  void erase(int at) noexcept {
    for (int i = at; i + 1 < rank_; ++i) (*this)[i] = (*this)[i + 1];
    --rank_;
  }

  /// Whether all numbers are the same.
  friend bool operator==(const Dims& a, const Dims& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }

 private:
  std::array<std::int64_t, max_rank> values_{};
  int rank_ = 0;
};

using Shape = Dims;    ///< sizes
using Strides = Dims;  ///< distances between neighbours along each dimension, in elements

/// Product of the sizes; throws when a size is negative or the product does not fit 63 bits.
std::int64_t numel(const Shape& shape);

/// Row-major strides: the last dimension has stride 1.
Strides contiguous_strides(const Shape& shape) noexcept;

/// `dim` counted from the end when negative; throws "op: dimension …" outside -rank … rank-1 (rank 0 counts
/// as 1).
int wrap_dim(const char* op, std::int64_t dim, int rank);

/// The shape of a broadcast with b by NumPy's rule: sizes agree from the right or are 1; throws with both
/// shapes.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);

}  // namespace rill

/// Prints as [2, 3].
template <>
struct fmt::formatter<rill::Dims> {
  constexpr auto parse(format_parse_context& ctx) { return ctx.begin(); }
  auto format(const rill::Dims& dims, format_context& ctx) const -> format_context::iterator;
};

#pragma GCC visibility pop
