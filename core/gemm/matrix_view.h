/// A matrix in memory: the operand of products.
#pragma once

#include <cstdint>
#include <type_traits>

#include <rill/core/kernels/simd.h>

#pragma GCC visibility push(default)

namespace rill {

/// A non-owning view of a matrix [rows, columns].
///
/// Element (i, j) is data[i · ld + j], or data[j · ld + i] when `transposed`. The leading dimension `ld` is
/// the distance between rows as they are stored; by default rows follow each other without gaps:
/// `MatrixView<float>{x, 32, 256}` is a dense [32, 256], `.t()` of it a [256, 32] on the same memory.
template <class T>
struct MatrixView {
  T* data = nullptr;          ///< element (0, 0)
  std::int64_t rows = 0;      ///< of the view, transposed or not
  std::int64_t columns = 0;   ///< likewise
  std::int64_t ld = columns;  ///< elements from one stored row to the next
  bool transposed = false;    ///< stored [columns, rows]

  /// A read-only view.
  RILL_INLINE operator MatrixView<const T>() const noexcept requires(!std::is_const_v<T>) {
    return {data, rows, columns, ld, transposed};
  }

  /// The address of element (i, j).
  RILL_INLINE T* at(std::int64_t i, std::int64_t j) const noexcept {
    return data + (transposed ? j * ld + i : i * ld + j);
  }
  /// The transpose, on the same memory.
  RILL_INLINE MatrixView t() const noexcept { return {data, columns, rows, ld, !transposed}; }
  /// The block [block_rows, block_columns] that begins at element (i, j).
  RILL_INLINE MatrixView block(std::int64_t i, std::int64_t j, std::int64_t block_rows,
                               std::int64_t block_columns) const noexcept {
    return {at(i, j), block_rows, block_columns, ld, transposed};
  }
  /// Rows [first, last).
  RILL_INLINE MatrixView slice_rows(std::int64_t first, std::int64_t last) const noexcept {
    return block(first, 0, last - first, columns);
  }
  /// Columns [first, last).
  RILL_INLINE MatrixView slice_columns(std::int64_t first, std::int64_t last) const noexcept {
    return block(0, first, rows, last - first);
  }
};

}  // namespace rill

#pragma GCC visibility pop
