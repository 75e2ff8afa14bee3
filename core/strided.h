/// Walking several strided arrays of one shape at once.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include <rill/core/shape.h>

#pragma GCC visibility push(default)

namespace rill {

/// A loop nest over K arrays of one shape, with dimensions of size 1 gone and neighbours joined where every
/// array allows it.
template <int K>
struct LoopNest {
  int rank = 0;                                                       ///< loops
  std::array<std::int64_t, Dims::max_rank> sizes{};                   ///< of each loop, outermost first
  std::array<std::array<std::int64_t, Dims::max_rank>, K> strides{};  ///< of each array at each loop

  /// Of a shape and each array's strides, which array k takes at each loop as strides[k].
  LoopNest(const Shape& shape, const std::array<Strides, K>& given) noexcept {
    for (int d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1) continue;
      if (rank > 0 && joins(shape[d], given, d)) {
        sizes[last()] *= shape[d];
      } else {
        sizes[static_cast<std::size_t>(rank++)] = shape[d];
      }
      for (std::size_t k = 0; k < K; ++k) strides[k][last()] = given[k][d];
    }
  }

 private:
  std::size_t last() const noexcept { return static_cast<std::size_t>(rank - 1); }
  bool joins(std::int64_t size, const std::array<Strides, K>& given, int d) const noexcept {
    for (std::size_t k = 0; k < K; ++k) {
      if (strides[k][last()] != given[k][d] * size) return false;
    }
    return true;
  }
};

/// Calls f(offsets, n, strides) for runs of n elements that together visit every element in row-major order:
/// array k starts at element offsets[k] and steps by strides[k]. Strides are in elements; a broadcast
/// dimension has stride 0.
template <int K, class F>
void for_each_run(const Shape& shape, const std::array<Strides, K>& strides, F&& f) {
  for (std::int64_t size : shape) {
    if (size == 0) return;
  }
  std::array<std::int64_t, K> offsets{};
  std::array<std::int64_t, K> inner{};
  if (shape.size() == 1) {  // the common small case, without a nest
    for (std::size_t k = 0; k < K; ++k) inner[k] = strides[k][0];
    f(offsets, shape[0], inner);
    return;
  }
  const LoopNest<K> nest(shape, strides);
  const int outer = nest.rank - 1;
  if (outer < 0) {
    f(offsets, std::int64_t{1}, inner);
    return;
  }
  for (std::size_t k = 0; k < K; ++k) inner[k] = nest.strides[k][static_cast<std::size_t>(outer)];
  std::array<std::int64_t, Dims::max_rank> index{};
  for (;;) {
    f(offsets, nest.sizes[static_cast<std::size_t>(outer)], inner);
    int d = outer - 1;
    for (; d >= 0; --d) {
      const auto at = static_cast<std::size_t>(d);
      for (std::size_t k = 0; k < K; ++k) offsets[k] += nest.strides[k][at];
      if (++index[at] < nest.sizes[at]) break;
      for (std::size_t k = 0; k < K; ++k) offsets[k] -= nest.strides[k][at] * nest.sizes[at];
      index[at] = 0;
    }
    if (d < 0) return;
  }
}

/// The same in the order of array 0 in memory, for loops whose order does not matter: a transposed array is
/// walked as it lies.
template <int K, class F>
void for_each_run_in_memory_order(const Shape& shape, const std::array<Strides, K>& strides, F&& f) {
  Shape sizes = shape;
  std::array<Strides, K> sorted = strides;
  for (int d = 1; d < sizes.size(); ++d) {
    for (int at = d; at > 0 && sorted[0][at - 1] < sorted[0][at]; --at) {
      std::swap(sizes[at - 1], sizes[at]);
      for (Strides& s : sorted) std::swap(s[at - 1], s[at]);
    }
  }
  for_each_run<K>(sizes, sorted, f);
}

/// The strides with which an array of `shape` and `strides` is read as if it had the shape `wide` it
/// broadcasts to.
inline Strides broadcast_strides(const Shape& shape, const Strides& strides, const Shape& wide) noexcept {
  Strides out = Strides::filled(wide.size(), 0);
  const int skip = wide.size() - shape.size();
  for (int d = 0; d < shape.size(); ++d) out[d + skip] = shape[d] == 1 ? 0 : strides[d];
  return out;
}

}  // namespace rill

#pragma GCC visibility pop
