/// Simultaneous iteration over several strided arrays of one shape.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <rill/core/shape.h>

#pragma GCC visibility push(default)

namespace rill {

/// A loop nest over K non-empty arrays of one shape. Dimensions of size 1 are dropped, and adjacent
/// dimensions are merged where the strides of every array allow it. At least one loop remains.
template <int K>
struct LoopNest {
  std::size_t rank = 0;                                               ///< number of loops
  std::array<std::int64_t, Dims::max_rank> sizes{};                   ///< of each loop, outermost first
  std::array<std::array<std::int64_t, Dims::max_rank>, K> strides{};  ///< strides[k][d]: array k, loop d

  /// Builds the nest for arrays of `shape`, where array k has strides array_strides[k].
  LoopNest(const Shape& shape, const std::array<Strides, K>& array_strides) noexcept {
    for (int d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1) continue;
      if (rank > 0 && merges(shape[d], array_strides, d)) {
        sizes[rank - 1] *= shape[d];
      } else {
        sizes[rank++] = shape[d];
      }
      for (std::size_t k = 0; k < K; ++k) strides[k][rank - 1] = array_strides[k][d];
    }
    if (rank == 0) sizes[rank++] = 1;
  }

  /// Number of elements of the shape.
  std::int64_t numel() const noexcept {
    std::int64_t n = 1;
    for (std::size_t d = 0; d < rank; ++d) n *= sizes[d];
    return n;
  }

 private:
  bool merges(std::int64_t size, const std::array<Strides, K>& array_strides, int d) const noexcept {
    for (std::size_t k = 0; k < K; ++k) {
      if (strides[k][rank - 1] != array_strides[k][d] * size) return false;
    }
    return true;
  }
};

/// Visits the elements [begin, end) in row-major order by calling f(offsets, n, strides) for each run of n
/// elements: in array k the run starts at element offsets[k] and has stride strides[k].
template <int K, class F>
void for_each_run(const LoopNest<K>& nest, std::int64_t begin, std::int64_t end, F&& f) {
  const std::size_t inner = nest.rank - 1;
  std::array<std::int64_t, K> offsets{}, steps{};
  std::array<std::int64_t, Dims::max_rank> index{};
  std::int64_t rest = begin;
  for (std::size_t d = nest.rank; d-- > 0 && rest > 0; rest /= nest.sizes[d]) index[d] = rest % nest.sizes[d];
  for (std::size_t k = 0; k < K; ++k) {
    steps[k] = nest.strides[k][inner];
    for (std::size_t d = 0; d < nest.rank; ++d) offsets[k] += index[d] * nest.strides[k][d];
  }
  for (std::int64_t left = end - begin; left > 0;) {
    const std::int64_t n = std::min(left, nest.sizes[inner] - index[inner]);
    f(offsets, n, steps);
    left -= n;
    if (left == 0) return;
    for (std::size_t k = 0; k < K; ++k) offsets[k] -= index[inner] * steps[k];
    index[inner] = 0;
    for (std::size_t d = inner; d-- > 0;) {
      for (std::size_t k = 0; k < K; ++k) offsets[k] += nest.strides[k][d];
      if (++index[d] < nest.sizes[d]) break;
      for (std::size_t k = 0; k < K; ++k) offsets[k] -= nest.strides[k][d] * nest.sizes[d];
      index[d] = 0;
    }
  }
}

/// Visits all elements of arrays of `shape` likewise. Strides are in elements; a broadcast dimension has
/// stride 0.
template <int K, class F>
void for_each_run(const Shape& shape, const std::array<Strides, K>& strides, F&& f) {
  for (std::int64_t size : shape) {
    if (size == 0) return;
  }
  const LoopNest<K> nest(shape, strides);
  for_each_run(nest, 0, nest.numel(), f);
}

/// The strides that broadcast an array of `shape` and `strides` to the shape `wide`.
inline Strides broadcast_strides(const Shape& shape, const Strides& strides, const Shape& wide) noexcept {
  Strides out = Strides::filled(wide.size(), 0);
  const int skip = wide.size() - shape.size();
  for (int d = 0; d < shape.size(); ++d) out[d + skip] = shape[d] == 1 ? 0 : strides[d];
  return out;
}

}  // namespace rill

#pragma GCC visibility pop
