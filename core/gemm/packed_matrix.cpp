#include <rill/core/gemm/packed_matrix.h>

#include <type_traits>

#include <rill/core/error.h>
#include <rill/core/gemm/amx.h>
#include <rill/core/gemm/blocked.h>

namespace rill {
namespace {

/// Fewer rows leave most of a tile empty, while the AMX layout is half as large again.
constexpr std::int64_t rows_for_amx = 16;

}  // namespace

std::int64_t row_granularity(std::int64_t rows) noexcept {
  return rows >= rows_for_amx && kernels::has_amx() ? rows_for_amx : 1;
}

template <class T>
PackedMatrix<T>::PackedMatrix(MatrixView<const T> b, std::int64_t rows) : k_(b.rows), n_(b.columns) {
  if constexpr (std::is_same_v<T, float>) {
    if (row_granularity(rows) > 1) {
      block_.emplace(static_cast<std::size_t>(kernels::amx_packed_size(k_, n_)));
      for_amx_ = kernels::amx_pack(b, block_->data());
      if (for_amx_) return;
    }
  }
  block_.emplace(static_cast<std::size_t>(kernels::packed_size<T>(k_, n_)) * sizeof(T));
  kernels::pack(b, static_cast<T*>(block_->data()));
}

template <class T>
void PackedMatrix<T>::multiply(MatrixView<const T> a, T beta, MatrixView<T> c) const {
  check(a.rows == c.rows && a.columns == k_ && c.columns == n_ && !a.transposed && !c.transposed,
        "PackedMatrix: A {} × {} and C {} × {} do not fit the matrix, {} × {}, or are transposed", a.rows,
        a.columns, c.rows, c.columns, k_, n_);
  if constexpr (std::is_same_v<T, float>) {
    if (for_amx_) {
      const memory::Block workspace(static_cast<std::size_t>(kernels::amx_packed_workspace()));
      return kernels::amx_packed_gemm(a, block_->data(), beta, c, workspace.data());
    }
  }
  kernels::packed_gemm(a, static_cast<const T*>(block_->data()), beta, c);
}

template class PackedMatrix<float>;
template class PackedMatrix<double>;

}  // namespace rill
