/// A matrix packed once and multiplied many times.
///
/// Public, for custom ops (core/extend.h). The packed form of a tensor comes from `packed`
/// (core/ops/packed_weight.h), which caches it with the tensor.
#pragma once

#include <cstdint>
#include <optional>

#include <rill/core/gemm/matrix_view.h>
#include <rill/core/memory.h>

#pragma GCC visibility push(default)

namespace rill {

/// A matrix [k, n] in the layout of the kernels for few rows, or of AMX; immutable.
template <class T>
class PackedMatrix {
 public:
  /// Packs b for products of `rows` rows, counted over all threads: few and many rows use different layouts.
  PackedMatrix(MatrixView<const T> b, std::int64_t rows);

  std::int64_t rows() const noexcept { return k_; }     ///< k
  std::int64_t columns() const noexcept { return n_; }  ///< n

  /// C [m, n] = A [m, k] · this + beta · C on the calling thread, with A and C not transposed. Beta 0
  /// overwrites C, whatever it contained. The result of a row does not depend on m. Throws Error if the sizes
  /// do not match.
  void multiply(MatrixView<const T> a, T beta, MatrixView<T> c) const;

 private:
  std::int64_t k_, n_;
  bool for_amx_ = false;
  std::optional<memory::Block> block_;
};

/// The row granularity of a float32 product with `rows` rows: up to that many rows take as long as one, so a
/// batch is best split into multiples of it.
std::int64_t row_granularity(std::int64_t rows) noexcept;

extern template class PackedMatrix<float>;
extern template class PackedMatrix<double>;

}  // namespace rill

#pragma GCC visibility pop
