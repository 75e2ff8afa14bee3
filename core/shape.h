/// Shapes and strides: short inline vectors of 64-bit integers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include <rill/core/error.h>

#pragma GCC visibility push(default)

namespace rill {

/// An inline vector of at most `max_rank` integers, one per dimension. Access is bounds-checked.
class Dims {
 public:
  static constexpr int max_rank = 8;  ///< maximum number of dimensions of a tensor

  Dims() = default;
  // --- from a list; throws if it has more than max_rank entries
  Dims(std::initializer_list<std::int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  /// Copies a span; throws if it has more than max_rank entries.
  explicit Dims(std::span<const std::int64_t> values) {
    check(values.size() <= max_rank, "shape: {} dimensions; the maximum is {}", values.size(), max_rank);
    for (std::int64_t v : values) values_[static_cast<std::size_t>(rank_++)] = v;
  }
  /// `rank` entries equal to `value`.
  static Dims filled(int rank, std::int64_t value) {
    check(rank >= 0 && rank <= max_rank, "shape: {} dimensions; the maximum is {}", rank, max_rank);
    Dims d;
    d.rank_ = rank;
    std::fill_n(d.values_.begin(), rank, value);
    return d;
  }

  // --- access; size() is the number of dimensions
  int size() const noexcept { return rank_; }
  bool empty() const noexcept { return rank_ == 0; }
  /// Entry i, counted from the end if negative; throws unless -size() <= i < size().
  std::int64_t& operator[](std::int64_t i) { return values_[index(i)]; }
  std::int64_t operator[](std::int64_t i) const { return values_[index(i)]; }
  std::int64_t back() const { return (*this)[-1]; }
  const std::int64_t* begin() const noexcept { return values_.data(); }
  const std::int64_t* end() const noexcept { return values_.data() + rank_; }

  /// Appends v.
  void push_back(std::int64_t v) { insert(rank_, v); }
  /// Inserts v before entry `at`, 0 <= at <= size().
  void insert(int at, std::int64_t v) {
    check(rank_ < max_rank, "shape: more than {} dimensions", max_rank);
    check(at >= 0 && at <= rank_, "shape: cannot insert at position {} of {} dimensions", at, rank_);
    std::int64_t* const to = values_.data() + at;
    std::copy_backward(to, values_.data() + rank_, values_.data() + rank_ + 1);
    ++rank_;
    *to = v;
  }
  /// Removes entry `at`.
  void erase(int at) {
    std::int64_t* const from = values_.data() + index(at);
    std::copy(from + 1, values_.data() + rank_, from);
    --rank_;
  }

  /// Whether the ranks and all entries are equal.
  friend bool operator==(const Dims& a, const Dims& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    // std::equal would call memcmp, which for so few entries takes a tenth of the time of a small op.
    for (std::size_t i = 0; i < static_cast<std::size_t>(a.rank_); ++i) {
      if (a.values_[i] != b.values_[i]) return false;
    }
    return true;
  }

 private:
  std::size_t index(std::int64_t i) const {
    const std::int64_t at = i < 0 ? i + rank_ : i;
    if (static_cast<std::uint64_t>(at) >= static_cast<std::uint64_t>(rank_)) [[unlikely]]
      fail_index(i);
    return static_cast<std::size_t>(at);
  }
  [[noreturn]] void fail_index(std::int64_t i) const;

  std::array<std::int64_t, max_rank> values_{};
  int rank_ = 0;
};

using Shape = Dims;    ///< sizes
using Strides = Dims;  ///< distance between consecutive entries of each dimension, in elements

/// Product of the sizes; throws if a size is negative or the product exceeds 2^63 - 1.
std::int64_t numel(const Shape& shape);

/// a + b for sizes; throws "op: …" on overflow.
inline std::int64_t checked_add(const char* op, std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  check(!__builtin_add_overflow(a, b, &sum), "{}: the size {} + {} exceeds 2^63 - 1", op, a, b);
  return sum;
}
/// a · b for sizes; throws "op: …" on overflow.
inline std::int64_t checked_mul(const char* op, std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  check(!__builtin_mul_overflow(a, b, &product), "{}: the size {} x {} exceeds 2^63 - 1", op, a, b);
  return product;
}

/// a / b rounded up, for a >= 0 and b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) noexcept { return a / b + (a % b != 0); }

/// Row-major strides: the last dimension has stride 1.
Strides contiguous_strides(const Shape& shape) noexcept;

/// Maps a negative `dim` to dim + rank; throws "op: dimension …" unless -rank <= dim < rank, hence always for
/// rank 0. An op that treats a scalar as a tensor of one element passes max(rank, 1).
int wrap_dim(const char* op, std::int64_t dim, int rank);

/// The broadcast shape of a and b by NumPy's rules: aligned from the right, sizes are equal or one of them is
/// 1. Throws "op: …" if the shapes do not broadcast.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);

}  // namespace rill

/// Prints as [2, 3].
template <>
struct fmt::formatter<rill::Dims> {
  constexpr auto parse(format_parse_context& ctx) { return ctx.begin(); }
  [[gnu::visibility("default")]] auto format(const rill::Dims& dims, format_context& ctx) const
      -> format_context::iterator;
};

#pragma GCC visibility pop
