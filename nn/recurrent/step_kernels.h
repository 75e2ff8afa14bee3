/// The operands of a unit's kernels: the rows of one step for m sequences of a batch, single-threaded.
///
/// A row of gates has G columns: blocks of H, one per gate, in the unit's order.
#pragma once

#include <cstdint>
#include <type_traits>

#include <rill/core/kernels/simd.h>

namespace rill::kernels {

/// Contiguous rows, `stride` elements apart; with an order, row i is at index order[i].
template <class T>
struct RowView {
  T* data = nullptr;
  std::int64_t stride = 0;
  const std::int64_t* order = nullptr;

  RILL_INLINE T* operator[](std::int64_t i) const noexcept { return data + (order ? order[i] : i) * stride; }
  operator RowView<const T>() const noexcept requires(!std::is_const_v<T>) { return {data, stride, order}; }
};

/// The forward pass of m rows.
template <class T>
struct StepRows {
  std::int64_t count;              ///< m
  std::int64_t hidden;             ///< H
  RowView<const T> h, c = {};      ///< previous states; c only for units with two
  const T* bias;                   ///< [G + H]: the sum of both biases; if the candidate's
                                   /// < hidden product is reset, its hidden bias is in the last block
  T* products;                     ///< [m, G], h·W_hh
  T* gates;                        ///< [m, G], x·W_ih; becomes the activations
  T* q = nullptr;                  ///< [m, H], receives the candidate's hidden product if that is reset
  RowView<T> next_h, next_c = {};  ///< the new states; may be the rows of h and c
};

/// The backward pass of m rows.
template <class T>
struct StepGradients {
  std::int64_t count, hidden;
  RowView<const T> h, c = {};  ///< previous states
  RowView<const T> dy = {};    ///< gradient of the new h from outside the recurrence; null: none
  T* gates;                    ///< [m, G], the activations; becomes the gradients of the hidden products
  T* q = nullptr;              ///< [m, H], becomes the gradient of the candidate's input side
  T* candidate = nullptr;      ///< [m, H], with an inner product: see Unit; becomes the candidate
  T* dh;                       ///< [m, H], gradient of the new h from later steps; becomes the part of the
                               ///< previous h's that does not come through h·W_hh
  T* dc = nullptr;             ///< [m, H], the same of c
};

/// dh += row k of dy, if there is a dy.
template <class T>
RILL_INLINE void add_row(std::int64_t n, const RowView<const T>& dy, std::int64_t k, T* dh) noexcept {
  if (!dy.data) return;
  const T* row = dy[k];
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dh[i] += row[i];
}

}  // namespace rill::kernels
