#include <rill/core/about.h>

#include <fmt/format.h>

#include <rill/core/error.h>
#include <rill/core/gemm/amx.h>
#include <rill/core/gemm/blas.h>
#include <rill/core/kernels/simd.h>
#include <rill/core/parallel.h>

namespace rill {

namespace detail {
#ifdef _GLIBCXX_DEBUG
const char rill_was_built_with_GLIBCXX_DEBUG = 0;
#else
const char rill_was_built_without_GLIBCXX_DEBUG = 0;
#endif
}  // namespace detail

const char* version() noexcept { return RILL_VERSION; }

const char* simd_name() noexcept {
  switch (kernels::simd_level()) {
    case kernels::SimdLevel::v3:
      return "x86-64-v3";
    case kernels::SimdLevel::v4:
      return kernels::has_amx() ? "x86-64-v4 with AMX" : "x86-64-v4";
    case kernels::SimdLevel::baseline:
      break;
  }
  return "baseline";
}

const char* blas_name() noexcept { return kernels::blas_name(); }

std::string about() {
  const int threads = num_threads();
  return fmt::format("rill {}, {}, {} thread{}, {}", version(), simd_name(), threads, threads == 1 ? "" : "s",
                     blas_name());
}

}  // namespace rill
