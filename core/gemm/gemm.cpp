#include <rill/core/gemm/gemm.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include <rill/core/error.h>
#include <rill/core/gemm/amx.h>
#include <rill/core/gemm/blas.h>
#include <rill/core/gemm/blocked.h>
#include <rill/core/gemm/thin.h>
#include <rill/core/memory.h>
#include <rill/core/parallel.h>

namespace rill {
namespace {

// Up to this size OpenBLAS has kernels without packing on AVX-512, unless only B is transposed; rill's
// kernels, at about 10 microseconds, do not benefit from threads either.
constexpr std::int64_t small_product = 1'000'000;  // multiplications

// With fewer rows or columns, packing the other operand does not pay off.
constexpr std::int64_t thin_side = 16;

// Up to this number of rows of A, a B stored by rows is not packed.
constexpr std::int64_t few_rows = 32;

enum class Kernel : std::uint8_t { blas, thin, blocked, amx };
enum class Split : std::uint8_t { none, fixed, anywhere };

// The kernel and the partition of a product. All parts use the same kernel.
struct Plan {
  Kernel kernel;
  Split split;
};

// Whether AMX gains more than splitting the operands costs.
template <class T>
bool worth_amx(std::int64_t m, std::int64_t n, std::int64_t k) noexcept {
  constexpr std::int64_t shorter = 64;
  constexpr std::int64_t longer = 128;
  constexpr std::int64_t depth = 32;
  return std::is_same_v<T, float> && std::min(m, n) >= shorter && std::max(m, n) >= longer && k >= depth &&
         kernels::has_amx();
}

template <class T>
Plan plan_of(const MatrixView<const T>& a, const MatrixView<const T>& b) noexcept {
  const std::int64_t m = a.rows, n = b.columns, k = a.columns;
  const std::int64_t shorter = std::min(m, n);
  const bool thin = shorter < thin_side || (!a.transposed && !b.transposed && m <= few_rows);
  // Divided, because m n k may overflow.
  const bool small = shorter <= 0 || k <= 0 || shorter <= small_product / std::max(m, n) / k;
  if (small && (thin || k < thin_side || a.transposed || !b.transposed)) return {Kernel::blas, Split::none};
  if (thin && (a.transposed || m == 1 || m > few_rows || (b.transposed && m >= thin_side)))
    return {Kernel::blas, Split::fixed};
  if (thin) return {Kernel::thin, Split::fixed};
  return {worth_amx<T>(m, n, k) ? Kernel::amx : Kernel::blocked, small ? Split::none : Split::anywhere};
}

template <class T>
void run(Kernel kernel, MatrixView<const T> a, MatrixView<const T> b, T beta, MatrixView<T> c) {
  if (kernel == Kernel::blas) return kernels::blas_gemm(a, b, beta, c);
  if (kernel == Kernel::thin) return kernels::thin_gemm(a, b, beta, c);
  if constexpr (std::is_same_v<T, float>) {
    if (kernel == Kernel::amx) {
      const memory::Block workspace(static_cast<std::size_t>(kernels::amx_workspace()));
      return kernels::amx_gemm(a, b, beta, c, workspace.data());
    }
  }
  const memory::Block workspace(static_cast<std::size_t>(kernels::blocked_workspace<T>()) * sizeof(T));
  kernels::blocked_gemm(a, b, beta, c, static_cast<T*>(workspace.data()));
}

// The longest sum left to a kernel. BLAS may add products sequentially; the other kernels add blocks of a few
// hundred.
std::int64_t longest_sum(Kernel kernel) noexcept { return kernel == Kernel::blas ? 512 : 16384; }

// C = A B + beta C, with longer sums split in halves: rounding errors grow with the number of sequential
// additions, here only with its logarithm.
template <class T>
void run_in_halves(Kernel kernel, MatrixView<const T> a, MatrixView<const T> b, T beta, MatrixView<T> c) {
  const std::int64_t k = a.columns, half = k / 2;
  if (k <= longest_sum(kernel)) return run(kernel, a, b, beta, c);
  run_in_halves(kernel, a.slice_columns(0, half), b.slice_rows(0, half), beta, c);
  const memory::Block block(static_cast<std::size_t>(c.rows * c.columns) * sizeof(T));
  const MatrixView<T> rest{static_cast<T*>(block.data()), c.rows, c.columns};
  run_in_halves(kernel, a.slice_columns(half, k), b.slice_rows(half, k), T(0), rest);
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.columns; ++j) *c.at(i, j) += *rest.at(i, j);
  }
}

// Elements of `length` computed at a time, and the minimum per thread.
struct Chunks {
  std::int64_t size, grain;
};

Chunks chunks_of(Split split, std::int64_t length) {
  if (split == Split::fixed) {
    // By the sizes alone, since BLAS may add in a different order for a different size.
    constexpr std::int64_t shortest = 128, most = 16;
    const std::int64_t count = std::clamp(length / shortest, std::int64_t{1}, most);
    return {((length + count - 1) / count + 15) / 16 * 16, 1};
  }
  // Every chunk packs the operand that it shares with the others, so there should be few; twice as many as
  // threads balance the load. Boundaries are those of packed panels and tiles.
  constexpr std::int64_t panels = 96, fewest = 2;
  const std::int64_t count = (length + panels - 1) / panels;
  return {panels, std::max(fewest, (count + 2 * num_threads() - 1) / (2 * num_threads()))};
}

}  // namespace

template <class T>
void gemm(MatrixView<const T> a, MatrixView<const T> b, T beta, MatrixView<T> c) {
  if (c.transposed) return gemm<T>(b.t(), a.t(), beta, c.t());
  check(a.rows == c.rows && a.columns == b.rows && b.columns == c.columns,
        "matmul: sizes {} × {} and {} × {} do not make {} × {}", a.rows, a.columns, b.rows, b.columns, c.rows,
        c.columns);
  const std::int64_t largest = std::max({c.rows, c.columns, a.columns, a.ld, b.ld, c.ld});
  check(largest <= std::numeric_limits<std::int32_t>::max(),
        "matmul: a size or leading dimension of {} is beyond the 2147483647 of BLAS; split the product",
        largest);
  const Plan plan = plan_of(a, b);
  if (plan.split == Split::none) return run_in_halves(plan.kernel, a, b, beta, c);
  const bool by_rows = c.rows > c.columns;
  const std::int64_t length = by_rows ? c.rows : c.columns;
  const auto part = [&](std::int64_t first, std::int64_t last) {
    if (by_rows) {
      run_in_halves(plan.kernel, a.slice_rows(first, last), b, beta, c.slice_rows(first, last));
    } else {
      run_in_halves(plan.kernel, a, b.slice_columns(first, last), beta, c.slice_columns(first, last));
    }
  };
  const Chunks chunks = chunks_of(plan.split, length);
  parallel_for((length + chunks.size - 1) / chunks.size, chunks.grain,
               [&](std::int64_t first, std::int64_t last) {
                 if (plan.split == Split::anywhere)
                   return part(first * chunks.size, std::min(last * chunks.size, length));
                 for (std::int64_t i = first; i < last; ++i)
                   part(i * chunks.size, std::min((i + 1) * chunks.size, length));
               });
}

template void gemm(MatrixView<const float>, MatrixView<const float>, float, MatrixView<float>);
template void gemm(MatrixView<const double>, MatrixView<const double>, double, MatrixView<double>);

}  // namespace rill
