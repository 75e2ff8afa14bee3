#include <rill/core/gemm/blas.h>

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include <cblas.h>

#include <rill/core/kernels/simd.h>

// Exported by OpenBLAS where it chooses among processors at run time, but not declared in its header.
extern "C" {
void gotoblas_dynamic_init() __attribute__((weak));
void gotoblas_dynamic_quit() __attribute__((weak));
}

namespace rill::kernels {
namespace {

// Chooses the kernels of OpenBLAS again if it did not know the processor. An older OpenBLAS takes an x86
// newer than itself for a Prescott of 2004, which makes products five times slower; a Prescott has no AVX2.
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

// rill has its own threads and splits products itself; a BLAS that starts threads too would oversubscribe the
// processor and make results depend on their number.
bool prepare_blas() noexcept {
  static const bool prepared = [] {
    correct_processor();
    openblas_set_num_threads(1);
    return true;
  }();
  return prepared;
}

// When the library is loaded: before other threads might use OpenBLAS or the environment.
[[maybe_unused]] const bool prepared_at_load = prepare_blas();

// A call of BLAS. Debian has three builds of OpenBLAS: that with threads of its own may be called from
// anywhere; that on OpenMP keeps the number of threads for each calling thread; that without threads has no
// locks, so calls take turns.
class Call {
 public:
  Call() noexcept {
    prepare_blas();
    if (build == OPENBLAS_SEQUENTIAL) {
      turn.lock();
    } else if (build == OPENBLAS_OPENMP) {
      thread_local const bool alone = (openblas_set_num_threads(1), true);
      static_cast<void>(alone);
    }
  }
  ~Call() {
    if (build == OPENBLAS_SEQUENTIAL) turn.unlock();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  static inline const int build = openblas_get_parallel();
  static constinit inline std::mutex turn;
  // The child of a fork must not find it taken by a thread that it does not have.
  [[maybe_unused]] static inline const int over_forks =
      build == OPENBLAS_SEQUENTIAL
          ? pthread_atfork([] { turn.lock(); }, [] { turn.unlock(); }, [] { turn.unlock(); })
          : 0;
};

template <class T>
void scale(std::int64_t m, std::int64_t n, T beta, T* c, std::int64_t ldc) noexcept {
  for (std::int64_t i = 0; i < m; ++i) {
    T* row = c + i * ldc;
    if (beta == T(0)) {
      std::fill(row, row + n, T(0));
    } else if (beta != T(1)) {
      for (std::int64_t j = 0; j < n; ++j) row[j] *= beta;
    }
  }
}

CBLAS_TRANSPOSE transposed(bool t) noexcept { return t ? CblasTrans : CblasNoTrans; }

void blas_gemm(bool ta, bool tb, blasint m, blasint n, blasint k, const float* a, blasint lda, const float* b,
               blasint ldb, float beta, float* c, blasint ldc) noexcept {
  cblas_sgemm(CblasRowMajor, transposed(ta), transposed(tb), m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
}

void blas_gemm(bool ta, bool tb, blasint m, blasint n, blasint k, const double* a, blasint lda,
               const double* b, blasint ldb, double beta, double* c, blasint ldc) noexcept {
  cblas_dgemm(CblasRowMajor, transposed(ta), transposed(tb), m, n, k, 1.0, a, lda, b, ldb, beta, c, ldc);
}

// y += op(A) x, A stored [rows, columns].
void blas_gemv(bool t, blasint rows, blasint columns, const float* a, blasint lda, const float* x,
               blasint incx, float* y, blasint incy) noexcept {
  cblas_sgemv(CblasRowMajor, transposed(t), rows, columns, 1.0f, a, lda, x, incx, 1.0f, y, incy);
}

void blas_gemv(bool t, blasint rows, blasint columns, const double* a, blasint lda, const double* x,
               blasint incx, double* y, blasint incy) noexcept {
  cblas_dgemv(CblasRowMajor, transposed(t), rows, columns, 1.0, a, lda, x, incx, 1.0, y, incy);
}

}  // namespace

template <class T>
void gemm(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda,
          const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) noexcept {
  if (m <= 0 || n <= 0) return;
  if (k <= 0) return scale(m, n, beta, c, ldc);
  const Call call;
  const auto narrow = [](std::int64_t size) { return static_cast<blasint>(size); };
  if (m == 1) {
    // c^T = op(B)^T a^T
    scale(1, n, beta, c, ldc);
    const blasint rows = narrow(tb ? n : k);
    const blasint columns = narrow(tb ? k : n);
    blas_gemv(!tb, rows, columns, b, narrow(ldb), a, ta ? narrow(lda) : 1, c, 1);
  } else if (n == 1) {
    scale(m, 1, beta, c, ldc);
    const blasint rows = narrow(ta ? k : m);
    const blasint columns = narrow(ta ? m : k);
    blas_gemv(ta, rows, columns, a, narrow(lda), b, tb ? 1 : narrow(ldb), c, narrow(ldc));
  } else {
    blas_gemm(ta, tb, narrow(m), narrow(n), narrow(k), a, narrow(lda), b, narrow(ldb), beta, c, narrow(ldc));
  }
}

template void gemm<float>(bool, bool, std::int64_t, std::int64_t, std::int64_t, const float*, std::int64_t,
                          const float*, std::int64_t, float, float*, std::int64_t) noexcept;
template void gemm<double>(bool, bool, std::int64_t, std::int64_t, std::int64_t, const double*, std::int64_t,
                           const double*, std::int64_t, double, double*, std::int64_t) noexcept;

const char* blas_name() noexcept { return openblas_get_config(); }

}  // namespace rill::kernels
