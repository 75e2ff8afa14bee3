/// A ragged batch of sequences as rows behind one another: what a recurrent layer works on without a mask.
///
/// Rows of the batch are ranked by length, longest first. Step t has the rows of rank 0 … active(t) - 1 and they lie at
/// offset(t), offset(t) + 1, …; what lies past a row's length exists nowhere. A batch whose rows are all of full length is
/// simply [T·B, width], in the order of the batch. Internal to the recurrent layers.
#pragma once

#include <cstdint>
#include <vector>

#include <rill/core/tensor.h>

namespace rill::nn {

/// A tensor of T steps and B rows in either order of these: where element (t, b, 0) lies. The last dimension is dense.
template <class T>
struct StepRows {
  T* data;
  std::int64_t step;  ///< distance between steps
  std::int64_t row;   ///< distance between rows of the batch
  T* at(std::int64_t t, std::int64_t b) const noexcept { return data + t * step + b * row; }
};

class PackedRows {
 public:
  /// T steps of B rows with lengths int64 [B] in 0 … T, or undefined: all T. Throws "op: …" for other lengths.
  PackedRows(const char* op, std::int64_t steps, std::int64_t batch, const Tensor& lengths);

  std::int64_t steps() const noexcept { return steps_; }
  std::int64_t batch() const noexcept { return batch_; }
  /// Rows in all steps together.
  std::int64_t total() const noexcept { return offset(steps_); }
  /// Whether there is nothing to pack: every row has every step, in the order of the batch.
  bool dense() const noexcept { return order_.empty(); }

  std::int64_t active(std::int64_t t) const noexcept { return offset(t + 1) - offset(t); }
  std::int64_t offset(std::int64_t t) const noexcept {
    return dense() ? t * batch_ : offsets_[static_cast<std::size_t>(t)];
  }
  /// The row of the batch that has this rank.
  std::int64_t row(std::int64_t rank) const noexcept {
    return dense() ? rank : order_[static_cast<std::size_t>(rank)];
  }
  std::int64_t length(std::int64_t rank) const noexcept {
    return dense() ? steps_ : lengths_[static_cast<std::size_t>(rank)];
  }

  /// to [total, width] = the rows of `from`.
  template <class T>
  void gather(const StepRows<const T>& from, std::int64_t width, T* to) const;
  /// The rows of `to` = beta · to + from [total, width]; with beta 0 what lies past the lengths becomes 0, else it stays.
  template <class T>
  void scatter(const T* from, std::int64_t width, T beta, const StepRows<T>& to) const;

 private:
  std::int64_t steps_, batch_;
  std::vector<std::int64_t> order_, lengths_, offsets_;  // lengths by rank; all empty when dense
};

extern template void PackedRows::gather<float>(const StepRows<const float>&, std::int64_t, float*) const;
extern template void PackedRows::gather<double>(const StepRows<const double>&, std::int64_t, double*) const;
extern template void PackedRows::scatter<float>(const float*, std::int64_t, float, const StepRows<float>&) const;
extern template void PackedRows::scatter<double>(const double*, std::int64_t, double,
                                                 const StepRows<double>&) const;

}  // namespace rill::nn
