/// Parallel iteration over the elements of several dense tensors as one array. Internal to optim.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <rill/core/parallel.h>
#include <rill/core/tensor.h>

namespace rill::optim::detail {

/// Adjacent elements of one tensor within one block.
struct Chunk {
  std::int64_t block = 0;   ///< index of the block
  std::size_t tensor = 0;   ///< index of the tensor
  std::int64_t offset = 0;  ///< of the first element, in the tensor
  std::int64_t size = 0;    ///< in elements
};

/// The concatenation of contiguous tensors, split into blocks whose boundaries depend on the sizes alone.
class Flat {
 public:
  static constexpr std::int64_t block = 4096;    ///< elements
  static constexpr std::int64_t alignment = 16;  ///< elements; chunks are aligned like their tensors

  /// Concatenates the tensors; undefined ones have no elements.
  explicit Flat(const std::vector<Tensor>& tensors) {
    for (const Tensor& t : tensors) {
      starts_.push_back(end_);
      sizes_.push_back(t.defined() ? t.numel() : 0);
      end_ += (sizes_.back() + alignment - 1) / alignment * alignment;
    }
  }

  /// The number of blocks.
  std::int64_t blocks() const noexcept { return (end_ + block - 1) / block; }

  /// Calls f(Chunk) for all elements in parallel; the chunks of one block run on one thread, in order.
  template <class F>
  void for_each(const F& f) const {
    constexpr std::int64_t grain = 4;
    parallel_for(blocks(), grain, [&](std::int64_t first, std::int64_t last) {
      const auto above = std::upper_bound(starts_.begin(), starts_.end(), first * block);
      auto i = static_cast<std::size_t>(above - starts_.begin()) - 1;
      for (std::int64_t b = first; b < last; ++b) {
        for (; i < starts_.size() && starts_[i] < (b + 1) * block; ++i) {
          const std::int64_t begin = std::max(b * block - starts_[i], std::int64_t{0});
          const std::int64_t end = std::min((b + 1) * block - starts_[i], sizes_[i]);
          if (begin < end) f(Chunk{b, i, begin, end - begin});
          if (sizes_[i] > end) break;  // continues in the next block
        }
      }
    });
  }

 private:
  std::vector<std::int64_t> starts_, sizes_;  // in elements of the concatenation
  std::int64_t end_ = 0;
};

/// The address of element `offset` of a contiguous tensor, without bumping its version.
template <class T>
T* address(const Tensor& t, std::int64_t offset) noexcept {
  return reinterpret_cast<T*>(t.impl().storage->data()) + t.impl().offset + offset;
}

}  // namespace rill::optim::detail
