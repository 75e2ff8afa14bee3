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

// Up to here OpenBLAS has kernels that pack nothing on AVX-512, unless B alone is transposed; our own have no
// use for more than one thread either, at some 10 microseconds.
constexpr std::int64_t small_product = 1'000'000;  // multiplications

// With fewer rows or columns than this, packing the other operand costs more than it gains.
constexpr std::int64_t thin_side = 16;

// Up to so many rows of A, a B that is stored by rows is read where it lies.
constexpr std::int64_t few_rows = 32;

enum class Kernel : std::uint8_t { blas, thin, blocked, amx };
enum class Split : std::uint8_t { none, fixed, anywhere };

// The kernel and the split of a product. All its parts take the same kernel.
struct Plan {
  Kernel kernel;
  Split split;
};

// AMX gains more than it costs to split the operands for it.
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

// The longest sum that a kernel adds up by itself. BLAS may add one product after the other; the others add
// blocks of some hundred.
std::int64_t longest_sum(Kernel kernel) noexcept { return kernel == Kernel::blas ? 512 : 16384; }

// C = A B + beta C, longer sums in halves: rounding errors grow with the number of additions in a row, here
// with its logarithm.
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

// Elements of `length` that are computed at a time, and the fewest of them that a thread takes.
struct Chunks {
  std::int64_t size, grain;
};

Chunks chunks_of(Split split, std::int64_t length) {
  if (split == Split::fixed) {
    // By the sizes alone, since BLAS may add in another order for another size.
    constexpr std::int64_t shortest = 128, most = 16;
    const std::int64_t count = std::clamp(length / shortest, std::int64_t{1}, most);
    return {((length + count - 1) / count + 15) / 16 * 16, 1};
  }
  // Every thread's chunk packs the operand that it shares with the others, so there should be few; twice as
  // many as threads let a free one help out. Borders are those of the packed panels and of the tiles.
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
