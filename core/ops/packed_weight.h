/// Weights packed once and multiplied many times.
///
/// A recurrent layer multiplies by the same matrix at every time step, in the forward and, transposed, in the
/// backward pass. BLAS packs it at every call; a PackedMatrix is packed once and cached with the weight's
/// storage until the weight changes. Public, for custom ops (core/extend.h).
#pragma once

#include <cstdint>
#include <memory>

#include <rill/core/gemm/packed_matrix.h>
#include <rill/core/tensor.h>

#pragma GCC visibility push(default)

namespace rill {

/// The packed form of a matrix w [k, n] of any layout (pass w.t() for the transposed product), for products
/// of `rows` rows in all. It is cached with w's storage until that changes, so each view of a weight is
/// packed once. May be called from any thread. Throws Error unless w is a matrix of T.
template <class T>
[[gnu::visibility("default")]] std::shared_ptr<const PackedMatrix<T>> packed(const Tensor& w,
                                                                             std::int64_t rows);

extern template std::shared_ptr<const PackedMatrix<float>> packed<float>(const Tensor&, std::int64_t);
extern template std::shared_ptr<const PackedMatrix<double>> packed<double>(const Tensor&, std::int64_t);

}  // namespace rill

#pragma GCC visibility pop
