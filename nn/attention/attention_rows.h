/// A memory as operands of the kernels: one source at a time, by strides. Internal to attention and decoders.
#pragma once

#include <algorithm>

#include <rill/core/autograd.h>
#include <rill/core/gemm/gemm.h>
#include <rill/core/ops/matmul_into.h>
#include <rill/nn/attention/attention.h>
#include <rill/nn/attention/attention_kernels.h>

namespace rill::nn::detail {

/// Pointers into values [S, B, M], keys [S, B, A] and lengths [B] (undefined: all S).
template <class T>
class AttentionRows {
 public:
  AttentionRows(const Tensor& values, const Tensor& keys, const Tensor& lengths)
      : values_(rill::detail::raw<const T>(values)),
        keys_(rill::detail::raw<const T>(keys)),
        lengths_(lengths.defined() ? lengths.data<std::int64_t>() : nullptr),
        steps_(values.size(0)),
        width_(values.size(2)),
        value_step_(values.stride(0)),
        value_row_(values.stride(1)),
        size_(keys.size(2)),
        key_step_(keys.stride(0)),
        key_row_(keys.stride(1)) {}

  std::int64_t positions(std::int64_t row) const noexcept { return lengths_ ? lengths_[row] : steps_; }
  std::int64_t steps() const noexcept { return steps_; }
  std::int64_t size() const noexcept { return size_; }
  std::int64_t width() const noexcept { return width_; }

  kernels::AttentionSource<T> operator[](std::int64_t row) const noexcept {
    return {.positions = positions(row),
            .size = size_,
            .width = width_,
            .keys = keys_ + row * key_row_,
            .key_stride = key_step_,
            .values = values_ + row * value_row_,
            .value_stride = value_step_};
  }

 private:
  const T *values_, *keys_;
  const std::int64_t* lengths_;
  std::int64_t steps_, width_, value_step_, value_row_, size_, key_step_, key_row_;
};

/// x itself if its last dimension is dense, else a copy.
inline Tensor dense_rows(const Tensor& x) {
  return !x.defined() || x.size(-1) <= 1 || x.stride(-1) == 1 ? x : x.contiguous();
}

/// The gradient of some rows of a weight: rows of slot.to from `first` on = slot.beta · themselves + a·b; the
/// others get gradient 0.
inline void matmul_into_rows(const Slot& slot, std::int64_t first, const Tensor& a, const Tensor& b) {
  const std::int64_t after = first + a.size(0);
  if (slot.beta == 0) {
    slot.to.narrow(0, 0, first).zero_();
    slot.to.narrow(0, after, slot.to.size(0) - after).zero_();
  }
  matmul_into({slot.to.narrow(0, first, a.size(0)), slot.beta}, a, b);
}

/// The gradient of one row's values: `to` [S, B, M] at `row` = weights [steps, S]ᵀ · dcontext [steps, M]; 0
/// past the row's length.
template <class T>
void values_gradient(const AttentionRows<T>& sources, std::int64_t row, std::int64_t steps, const T* weights,
                     const T* dcontext, const Tensor& to) {
  const std::int64_t valid = sources.positions(row), width = sources.width(), stride = to.size(1) * width;
  T* values = rill::detail::raw<T>(to) + row * width;
  const MatrixView<const T> of_steps{weights, steps, valid, sources.steps()};
  gemm<T>(of_steps.t(), {dcontext, steps, width}, T(0), {values, valid, width, stride});
  for (std::int64_t s = valid; s < sources.steps(); ++s) std::fill_n(values + s * stride, width, T(0));
}

}  // namespace rill::nn::detail
