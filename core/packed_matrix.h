/// Weights packed once and multiplied many times.
///
/// A recurrent layer multiplies the same matrix at every time step, forward and transposed. BLAS repacks it
/// at every call; a PackedMatrix is laid out for the small-M kernel once and kept with the weight's storage
/// until the weight changes.
#pragma once

#include <cstdint>
#include <memory>

#include <rill/core/kernels/packed.h>
#include <rill/core/memory.h>
#include <rill/core/tensor.h>

namespace rill {

/// A matrix [k, n] in the kernel's own layout; immutable.
template <class T>
class PackedMatrix {
 public:
  PackedMatrix(std::int64_t k, std::int64_t n, bool transposed, const T* b, std::int64_t ldb)
      : k_(k), n_(n), block_(static_cast<std::size_t>(kernels::packed_size<T>(k, n)) * sizeof(T)) {
    kernels::pack<T>(transposed, k, n, b, ldb, static_cast<T*>(block_.data()));
  }

  std::int64_t rows() const noexcept { return k_; }
  std::int64_t columns() const noexcept { return n_; }

  /// C[m, n] = A[m, k] · this + beta · C on the calling thread. A row's result does not depend on m.
  void multiply(std::int64_t m, const T* a, std::int64_t lda, T beta, T* c, std::int64_t ldc) const noexcept {
    kernels::packed_gemm<T>(m, n_, k_, a, lda, static_cast<const T*>(block_.data()), beta, c, ldc);
  }

 private:
  std::int64_t k_, n_;
  memory::Block block_;
};

/// The packed form of a matrix view w [k, n] of any layout with a unit stride (pass w.t() for the transposed
/// product). It is kept with w's storage, keyed by layout and version: the same weight is packed once until
/// it changes. Any thread may ask.
template <class T>
std::shared_ptr<const PackedMatrix<T>> packed(const Tensor& w);

extern template std::shared_ptr<const PackedMatrix<float>> packed<float>(const Tensor&);
extern template std::shared_ptr<const PackedMatrix<double>> packed<double>(const Tensor&);

}  // namespace rill
