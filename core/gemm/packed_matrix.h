/// Weights packed once and multiplied many times.
///
/// A recurrent layer multiplies the same matrix at every time step, forward and transposed. BLAS repacks it
/// at every call; a PackedMatrix is laid out for the small-M kernel once and kept with the weight's storage
/// until the weight changes, on a processor with AMX for its tiles if there are rows enough.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <rill/core/memory.h>
#include <rill/core/tensor.h>

namespace rill {

/// A matrix [k, n] in the kernels' own layout; immutable.
template <class T>
class PackedMatrix {
 public:
  /// `ldb` is the distance between stored rows; `transposed`: the matrix is stored [n, k]. `rows`: as many as
  /// the products are to have, over all threads; few and many have layouts of their own.
  PackedMatrix(std::int64_t k, std::int64_t n, bool transposed, const T* b, std::int64_t ldb,
               std::int64_t rows);

  std::int64_t rows() const noexcept { return k_; }
  std::int64_t columns() const noexcept { return n_; }

  /// C[m, n] = A[m, k] · this + beta · C on the calling thread. A row's result does not depend on m.
  void multiply(std::int64_t m, const T* a, std::int64_t lda, T beta, T* c, std::int64_t ldc) const;

 private:
  std::int64_t k_, n_;
  bool tiles_ = false;  ///< packed for kernels::amx_packed_gemm
  std::optional<memory::Block> block_;
};

/// How many rows of a float32 product of `rows` rows take as long as one: the shares of a batch should have
/// as many.
std::int64_t least_rows_of_share(std::int64_t rows) noexcept;

/// The packed form of a matrix view w [k, n] of any layout with a unit stride (pass w.t() for the transposed
/// product), for products of `rows` rows in all. It is kept with w's storage until that changes, so the same
/// weight is packed once for each layout. Any thread may ask.
template <class T>
std::shared_ptr<const PackedMatrix<T>> packed(const Tensor& w, std::int64_t rows);

extern template class PackedMatrix<float>;
extern template class PackedMatrix<double>;
extern template std::shared_ptr<const PackedMatrix<float>> packed<float>(const Tensor&, std::int64_t);
extern template std::shared_ptr<const PackedMatrix<double>> packed<double>(const Tensor&, std::int64_t);

}  // namespace rill
