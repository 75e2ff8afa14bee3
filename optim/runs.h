/// The numbers of several tensors as dense runs, and parallel walks over them. Internal to optim.
///
/// Parameters may be views: transposed, or some rows or columns of an array that several share. What an
/// optimiser does concerns single numbers, so it needs no shapes, only runs of numbers that lie next to each
/// other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <rill/core/parallel.h>
#include <rill/core/tensor.h>

#pragma GCC visibility push(default)

namespace rill::optim::detail {

/// `size` numbers next to each other, from element `offset` of tensor number `tensor`; `start` is their place
/// in the walk over all.
struct Run {
  std::size_t tensor = 0;
  std::int64_t offset = 0;
  std::int64_t size = 0;
  std::int64_t start = 0;
};

/// The part of a run that lies in one block of the walk.
struct Piece {
  std::int64_t block = 0;
  std::size_t tensor = 0;
  std::int64_t offset = 0;  ///< in the tensor, in elements
  std::int64_t start = 0;   ///< in the walk
  std::int64_t size = 0;
};

/// Strides of a tensor of `shape` without gaps whose dimensions lie in memory in the order that `strides`
/// gives them.
Strides dense_strides(const Shape& shape, const Strides& strides);

/// Runs one after the other, walked in blocks whose borders do not depend on the number of threads.
class Runs {
 public:
  static constexpr std::int64_t block = 4096;  ///< numbers
  static constexpr std::int64_t alignment =
      16;  ///< a tensor starts at a multiple, so its pieces are aligned as it is

  Runs() = default;
  /// The runs of each defined tensor, in memory order.
  explicit Runs(const std::vector<Tensor>& tensors);
  /// The same without the numbers that came before: a tensor that is there twice, or a view of another.
  static Runs without_repeats(const std::vector<Tensor>& tensors);

  /// Two tensors (or one, twice) that share a number.
  std::optional<std::pair<std::size_t, std::size_t>> overlap(const std::vector<Tensor>& tensors) const;

  /// Where the numbers of tensor i start in the walk; without gaps if its runs are all there.
  std::int64_t start(std::size_t i) const { return starts_[i]; }
  std::int64_t blocks() const noexcept { return (total_ + block - 1) / block; }

  /// Calls f(Piece) for all numbers, in parallel; the pieces of one block by one thread in order.
  template <class F>
  void for_each(const F& f) const {
    constexpr std::int64_t grain = 4;
    parallel_for(blocks(), grain, [&](std::int64_t first, std::int64_t last) {
      auto run = std::upper_bound(runs_.begin(), runs_.end(), first * block,
                                  [](std::int64_t at, const Run& r) { return at < r.start; });
      if (run != runs_.begin()) --run;
      for (std::int64_t b = first; b < last; ++b) {
        for (; run != runs_.end() && run->start < (b + 1) * block; ++run) {
          const std::int64_t begin = std::max(b * block, run->start);
          const std::int64_t end = std::min((b + 1) * block, run->start + run->size);
          if (begin < end) f(Piece{b, run->tensor, run->offset + begin - run->start, begin, end - begin});
          if (run->start + run->size > (b + 1) * block) break;
        }
      }
    });
  }

 private:
  std::vector<std::size_t> by_address(const std::vector<Tensor>& tensors) const;
  void place();

  std::vector<Run> runs_;
  std::vector<std::int64_t> starts_;
  std::int64_t total_ = 0;
};

/// The address of element `offset` of t.
inline std::byte* address(const Tensor& t, std::int64_t offset = 0) noexcept {
  const TensorImpl& impl = *t.ref();
  return impl.storage->data() + static_cast<std::size_t>(impl.offset + offset) * item_size(impl.dtype);
}

}  // namespace rill::optim::detail

#pragma GCC visibility pop
