/// Class targets of the losses over classes. Internal to ops.
#pragma once

#include <cstdint>
#include <optional>

#include <rill/core/ops.h>

namespace rill::detail {

/// Throws "op: …" unless `weight` is [classes] of `dtype`.
void check_class_weights(const char* op, const Tensor& weight, std::int64_t classes, DType dtype);

/// Validated targets: the class and weight of each row. Copies, so that later changes to the originals have
/// no effect.
class ClassTargets {
 public:
  /// Throws "op: …" unless `target` is int64 and within 0 … classes - 1 (or `ignore`), and `weight` is
  /// [classes] of `dtype` or undefined.
  ClassTargets(const char* op, const Tensor& target, std::int64_t classes, DType dtype, const Tensor& weight,
               std::optional<std::int64_t> ignore);

  std::int64_t size() const { return ids_.numel(); }
  /// The class of row i; negative if the row is ignored.
  std::int64_t operator[](std::int64_t i) const noexcept { return raw<const std::int64_t>(ids_)[i]; }
  bool counts(std::int64_t i) const noexcept { return (*this)[i] >= 0; }
  std::int64_t counted() const noexcept { return counted_; }
  /// The weights of the classes, null for ones.
  template <class T>
  const T* weights() const noexcept {
    return weight_.defined() ? raw<const T>(weight_) : nullptr;
  }
  /// The weight of row i, which must not be ignored.
  template <class T>
  T weight(std::int64_t i) const noexcept {
    return weight_.defined() ? raw<const T>(weight_)[(*this)[i]] : T(1);
  }
  /// Σ of the weights of all rows that are not ignored: the divisor of a mean.
  double total_weight() const noexcept { return total_weight_; }
  /// The gradient of the reduced loss with respect to the loss of a row. 0 for a mean over no weight: its
  /// value is NaN, but that need not turn the gradients of all parameters into NaN.
  double row_factor(Reduction reduction) const noexcept;
  /// Σ of the weights of the classes.
  double all_weights() const noexcept { return all_weights_; }

 private:
  Tensor ids_;
  Tensor weight_;
  std::int64_t counted_ = 0;
  double total_weight_ = 0;
  double all_weights_ = 0;
};

/// Losses of rows, reduced; `divisor` is that of the mean.
Tensor reduced_loss(const Tensor& losses, Reduction reduction, double divisor);

}  // namespace rill::detail
