/// What recurrent layers share: inputs, outputs, and the order in which the rows of a batch of sequences are
/// computed.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <rill/core/autograd.h>
#include <rill/core/tensor.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// What may be given to a recurrent layer besides its input: `gru(x, {.h0 = state, .lengths = lengths})`.
struct SequenceInputs {
  Tensor h0 = {};       ///< first states [layers · directions, B, H]; absent: zeros
  Tensor lengths = {};  ///< valid steps of each sequence, int64 [B] in 0 … T, in any order; absent: all T
};

/// What a recurrent layer gives.
struct SequenceOutput {
  Tensor output;  ///< states of the last layer; 0 past a sequence's length
  Tensor
      h_n;  ///< each layer's and direction's last state [layers · directions, B, H]; h0 where the length is 0
};

/// The valid rows of a batch of sequences [T, B, ..], and the order they are worked on.
///
/// Sequences stand longest first, each in its *place*; step t has rows for the first active(t) places, and
/// the rows of all steps lie one after another. So a ragged batch costs no more than its valid rows, and no
/// mask is multiplied. Without lengths, or where all are T, the rows are those of the batch itself.
class SequenceRows {
 public:
  /// Throws "op: …" unless lengths is undefined or int64 [batch] with values in 0 … steps.
  SequenceRows(const char* op, std::int64_t steps, std::int64_t batch, const Tensor& lengths);

  std::int64_t steps() const noexcept { return steps_; }
  std::int64_t batch() const noexcept { return batch_; }
  /// Whether some sequence is shorter than T.
  bool ragged() const noexcept { return !order_.empty(); }
  /// All rows of all steps.
  std::int64_t count() const noexcept { return first(steps_); }
  /// Sequences that are longer than t.
  std::int64_t active(std::int64_t t) const noexcept { return ragged() ? first(t + 1) - first(t) : batch_; }
  /// The row of place 0 at step t.
  std::int64_t first(std::int64_t t) const noexcept {
    return ragged() ? firsts_[static_cast<std::size_t>(t)] : t * batch_;
  }
  /// The sequence (index in the batch) at a place.
  std::int64_t sequence(std::int64_t place) const noexcept {
    return ragged() ? order_[static_cast<std::size_t>(place)] : place;
  }
  std::int64_t length(std::int64_t place) const noexcept {
    return ragged() ? lengths_[static_cast<std::size_t>(place)] : steps_;
  }

  /// The valid rows of x [T, B, W] as a matrix [count, W] with neighbouring columns: a view of x where its
  /// layout allows it, a copy otherwise. Not recorded.
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

  /// Ranges of places that threads may work on side by side: borders b_0 = 0 … b_n = B, with about the same
  /// number of rows in each. One range when a row costs so few `flops` that threads do not pay, and at most
  /// one for each r places or part of r, where r rows of `dtype` take as long as one (row_granularity).
  /// `batches`: how many such batches are worked on at once (directions), so that each need be cut less.
  std::vector<std::int64_t> shares(std::int64_t flops, DType dtype, std::int64_t batches = 1) const;

 private:
  Tensor as_rows(const Tensor& x) const;
  template <class F>
  void each_row(std::int64_t width, F&& f) const;

  std::int64_t steps_, batch_;
  std::vector<std::int64_t> order_;    // empty: as given, all of length T
  std::vector<std::int64_t> lengths_;  // of places, descending
  std::vector<std::int64_t> firsts_;   // steps + 1
};

}  // namespace rill::nn

#pragma GCC visibility pop
