#include <rill/core/gemm/blas.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include <cblas.h>

#include <rill/core/kernels/simd.h>
#include <rill/core/parallel/fork.h>

// Exported by OpenBLAS with run-time dispatch, but not declared in its header; and by the OpenMP runtime that
// it may use.
extern "C" {
void gotoblas_dynamic_init() __attribute__((weak));
void gotoblas_dynamic_quit() __attribute__((weak));
int omp_get_max_threads() __attribute__((weak));
void omp_set_num_threads(int) __attribute__((weak));
}

namespace rill::kernels {
namespace {

// Makes OpenBLAS select its kernels again, through its environment variable, if it did not recognize the
// processor. An older OpenBLAS treats an x86 newer than itself as a Prescott of 2004, which makes products
// five times slower; a Prescott has no AVX2.
void correct_processor() noexcept {
#if defined(__x86_64__)
  const SimdLevel level = cpu_simd_level();
  if (level == SimdLevel::baseline || std::strcmp(openblas_get_corename(), "Prescott") != 0) return;
  const bool one_processor = gotoblas_dynamic_init == nullptr || gotoblas_dynamic_quit == nullptr;
  const bool chosen_by_user = std::getenv("OPENBLAS_CORETYPE") != nullptr;
  if (one_processor || chosen_by_user) return;
  setenv("OPENBLAS_CORETYPE", level == SimdLevel::v4 ? "SkylakeX" : "Haswell", 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv("OPENBLAS_CORETYPE");
#endif
}

// Guards the thread count of OpenBLAS, or OpenBLAS itself if it has no locks.
constinit std::mutex mutex;
[[maybe_unused]] const bool fork_handlers_registered = detail::lock_across_forks<mutex>();

// A product with OpenBLAS restricted to the calling thread: rill splits products itself, and additional
// threads would oversubscribe the processor and make results depend on their number. Afterwards the previous
// thread count is restored for the program's own calls.
//
// Debian has three builds. With pthreads, the thread count belongs to the process; with OpenMP, to the
// calling thread; the serial build has no locks, so products are serialized.
class Call {
 public:
  explicit Call(bool may_split) noexcept : build_(openblas_get_parallel()), may_split_(may_split) {
    [[maybe_unused]] static const bool corrected = (correct_processor(), true);
    if (build_ == OPENBLAS_SEQUENTIAL) {
      mutex.lock();
    } else if (build_ == OPENBLAS_OPENMP) {
      previous_ = omp_get_max_threads ? omp_get_max_threads() : 1;
      if (previous_ != 1) omp_set_num_threads(1);
    } else if (may_split_) {
      const std::lock_guard lock(mutex);
      if (running++ == 0) threads_of_process = openblas_get_num_threads();
      if (threads_of_process != 1) openblas_set_num_threads(1);
    }
  }
  ~Call() {
    if (build_ == OPENBLAS_SEQUENTIAL) {
      mutex.unlock();
    } else if (build_ == OPENBLAS_OPENMP) {
      if (previous_ != 1) omp_set_num_threads(previous_);
    } else if (may_split_) {
      const std::lock_guard lock(mutex);
      if (--running == 0 && threads_of_process != 1) openblas_set_num_threads(threads_of_process);
    }
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  static constinit inline int running = 0;             // running products that OpenBLAS might split
  static constinit inline int threads_of_process = 1;  // before the first of them
  const int build_;
  const bool may_split_;
  int previous_ = 1;
};

// Whether OpenBLAS would use threads for a product of this size (interface/gemm.c and gemv.c).
bool may_split(std::int64_t m, std::int64_t n, std::int64_t k) noexcept {
  const double multiplications = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return multiplications >= (m == 1 || n == 1 ? 4 * 2304 : 4 * 65536);
}

template <class T>
void scale(T beta, MatrixView<T> c) noexcept {
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.columns; ++j) *c.at(i, j) = beta == T(0) ? T(0) : beta * *c.at(i, j);
  }
}

CBLAS_TRANSPOSE transposed(bool t) noexcept { return t ? CblasTrans : CblasNoTrans; }

template <class T>
void multiply(MatrixView<const T> a, MatrixView<const T> b, T beta, MatrixView<T> c) noexcept {
  const auto run = [&](auto cblas_gemm) {
    const auto narrow = [](std::int64_t size) { return static_cast<blasint>(size); };
    cblas_gemm(CblasRowMajor, transposed(a.transposed), transposed(b.transposed), narrow(c.rows),
               narrow(c.columns), narrow(a.columns), T(1), a.data, narrow(a.ld), b.data, narrow(b.ld), beta,
               c.data, narrow(c.ld));
  };
  if constexpr (sizeof(T) == 4) {
    run(cblas_sgemm);
  } else {
    run(cblas_dgemm);
  }
}

// y [1, n] = x [1, k] A + beta y.
template <class T>
void multiply_row(MatrixView<const T> x, MatrixView<const T> a, T beta, MatrixView<T> y) noexcept {
  const auto run = [&](auto cblas_gemv) {
    const auto narrow = [](std::int64_t size) { return static_cast<blasint>(size); };
    const auto increment = [&](const auto& v) { return v.transposed ? narrow(v.ld) : 1; };
    const MatrixView<const T> stored = a.transposed ? a.t() : a;
    cblas_gemv(CblasRowMajor, transposed(!a.transposed), narrow(stored.rows), narrow(stored.columns), T(1),
               a.data, narrow(a.ld), x.data, increment(x), T(1), y.data, increment(y));
  };
  if (beta != T(1)) scale(beta, y);
  if constexpr (sizeof(T) == 4) {
    run(cblas_sgemv);
  } else {
    run(cblas_dgemv);
  }
}

}  // namespace

template <class T>
void blas_gemm(MatrixView<const T> a, MatrixView<const T> b, T beta, MatrixView<T> c) noexcept {
  if (c.rows <= 0 || c.columns <= 0) return;
  if (a.columns <= 0) return scale(beta, c);
  const Call call(may_split(c.rows, c.columns, a.columns));
  if (c.rows == 1) {
    multiply_row(a, b, beta, c);
  } else if (c.columns == 1) {
    multiply_row(b.t(), a.t(), beta, c.t());
  } else {
    multiply(a, b, beta, c);
  }
}

template void blas_gemm(MatrixView<const float>, MatrixView<const float>, float, MatrixView<float>) noexcept;
template void blas_gemm(MatrixView<const double>, MatrixView<const double>, double,
                        MatrixView<double>) noexcept;

const char* blas_name() noexcept { return openblas_get_config(); }

}  // namespace rill::kernels
