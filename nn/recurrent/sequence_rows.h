/// The order in which the rows of a batch of sequences are processed.
#pragma once

#include <cstdint>
#include <iterator>
#include <vector>

#include <rill/core/autograd.h>
#include <rill/core/parallel.h>
#include <rill/core/tensor.h>

namespace rill::nn {

/// The valid rows of a batch of sequences [T, B, ..] in processing order.
///
/// Sequences are sorted longest first; the index in that order is the *position*. Step t has rows for the
/// first active(t) positions, and the rows of all steps are stored consecutively. So a ragged batch costs no
/// more than its valid rows, without masks. Without lengths, or if all are T, the rows are those of the batch
/// itself.
class SequenceRows {
 public:
  /// Throws "op: …" unless lengths is undefined or int64 [batch] with values in 0 … steps.
  SequenceRows(const char* op, std::int64_t steps, std::int64_t batch, const Tensor& lengths);

  std::int64_t steps() const noexcept { return steps_; }
  std::int64_t batch() const noexcept { return batch_; }
  /// Whether any sequence is shorter than T.
  bool ragged() const noexcept { return !order_.empty(); }
  /// Number of rows of all steps.
  std::int64_t count() const noexcept { return first(steps_); }
  /// Number of sequences longer than t.
  std::int64_t active(std::int64_t t) const noexcept { return ragged() ? first(t + 1) - first(t) : batch_; }
  /// The row of position 0 at step t.
  std::int64_t first(std::int64_t t) const noexcept {
    return ragged() ? firsts_[static_cast<std::size_t>(t)] : t * batch_;
  }
  /// The batch index of the sequence at a position.
  std::int64_t batch_index(std::int64_t position) const noexcept {
    return ragged() ? order_[static_cast<std::size_t>(position)] : position;
  }
  /// The batch indices of all positions; null if they are equal to the positions.
  const std::int64_t* order() const noexcept { return ragged() ? order_.data() : nullptr; }
  std::int64_t length(std::int64_t position) const noexcept {
    return ragged() ? lengths_[static_cast<std::size_t>(position)] : steps_;
  }

  /// States [.., B, H] reordered by position; detached.
  Tensor by_position(const Tensor& by_batch_index) const { return reordered(by_batch_index, false); }
  /// The inverse reordering.
  Tensor by_batch_index(const Tensor& by_position) const { return reordered(by_position, true); }

  /// The valid rows of x [T, B, W] as a matrix [count, W] with contiguous rows: a view of x if its layout
  /// allows it, a copy otherwise. Not recorded.
  Tensor gather(const Tensor& x) const;
  /// slot.to [T, B, W] = slot.beta · slot.to + the rows [count, W]; padded positions get 0.
  void scatter(const Slot& slot, const Tensor& rows) const;
  /// Calls write(Slot) to fill a matrix [count, W] of rows: slot.to [T, B, W] itself where possible,
  /// otherwise a buffer that is then scattered.
  template <class F>
  void write(const Slot& slot, F&& write) const {
    if (const Tensor rows = as_rows(slot.to); rows.defined()) return write(Slot{rows, slot.beta});
    const Tensor buffer = empty({count(), slot.to.size(2)}, slot.to.dtype());
    write(Slot{buffer, 0});
    scatter(slot, buffer);
  }

  /// Boundaries b_0 = 0 … b_n = B of chunks of positions that threads can process in parallel, with about the
  /// same number of rows in each. A single chunk if a row costs too few `flops` for threads to pay off; at
  /// most one chunk per r positions, where r is the row_granularity of `dtype`. `batches`: the number of
  /// batches processed concurrently (directions), so that each needs fewer chunks.
  std::vector<std::int64_t> chunk_borders(std::int64_t flops, DType dtype, std::int64_t batches = 1) const;
  /// Calls f(batch, begin, end) for all chunks of all batches, in parallel if that pays off.
  template <class F>
  void for_each_chunk(std::int64_t flops, DType dtype, std::int64_t batches, F&& f) const {
    const std::vector<std::int64_t> borders = chunk_borders(flops, dtype, batches);
    const std::int64_t chunks = std::ssize(borders) - 1;
    parallel_for(chunks * batches, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const auto chunk = static_cast<std::size_t>(i % chunks);
        f(static_cast<std::size_t>(i / chunks), borders[chunk], borders[chunk + 1]);
      }
    });
  }

 private:
  Tensor as_rows(const Tensor& x) const;
  Tensor reordered(const Tensor& from, bool back) const;
  template <class F>
  void each_row(std::int64_t width, F&& f) const;

  std::int64_t steps_, batch_;
  std::vector<std::int64_t> order_;    // empty: as given, all of length T
  std::vector<std::int64_t> lengths_;  // by position, descending
  std::vector<std::int64_t> firsts_;   // steps + 1
};

}  // namespace rill::nn
