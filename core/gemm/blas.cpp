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
  const Call call;
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
