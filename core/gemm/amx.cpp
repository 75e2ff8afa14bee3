#include <rill/core/gemm/amx.h>

#include <cstdlib>

#include <rill/core/gemm/amx_product.h>

#if defined(__x86_64__) && defined(__linux__) && !defined(RILL_SIMD_BASELINE) && !defined(RILL_SIMD_V3) && \
    !defined(RILL_SIMD_V4)
#define RILL_AMX 1
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#define RILL_AMX 0
#endif

namespace rill::kernels {
namespace {

#if RILL_AMX

// The processor's tiles, as required by amx_product.h. In assembly, since the compiler's intrinsics do not
// declare the memory they read and need flags that would affect the surrounding code.
class ProcessorTiles {
 public:
  ProcessorTiles() noexcept {
    alignas(64) static constexpr struct {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } shape;
    asm volatile("ldtilecfg (%0)" ::"r"(&shape) : "memory");
  }
  ~ProcessorTiles() { asm volatile("tilerelease" ::); }
  ProcessorTiles(const ProcessorTiles&) = delete;
  ProcessorTiles& operator=(const ProcessorTiles&) = delete;

  template <int tile>
  RILL_INLINE static void load(const void* from, std::int64_t row_bytes) noexcept {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row_bytes), "i"(tile) : "memory");
  }
  template <int tile>
  RILL_INLINE static void store(void* to, std::int64_t row_bytes) noexcept {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row_bytes), "i"(tile) : "memory");
  }
  template <int tile>
  RILL_INLINE static void zero() noexcept {
    asm volatile("tilezero %%tmm%c0" ::"i"(tile));
  }
  template <int to, int left, int right>
  RILL_INLINE static void multiply_add() noexcept {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(to), "i"(left), "i"(right));
  }
};

bool processor_has_tiles() noexcept {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned wanted = 1U << 24 | 1U << 22;  // AMX-TILE, AMX-BF16
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & wanted) == wanted;
}

// Linux does not save the contents of tiles until a process requests it.
bool system_grants_tiles() noexcept {
  constexpr long request = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long tile_data = 18;    // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request, tile_data) == 0;
}
#else
// This build does not use AMX: has_amx() is false and nothing calls these functions.
class ProcessorTiles {
 public:
  ProcessorTiles() noexcept { std::abort(); }
  template <int tile>
  static void load(const void*, std::int64_t) noexcept {}
  template <int tile>
  static void store(void*, std::int64_t) noexcept {}
  template <int tile>
  static void zero() noexcept {}
  template <int to, int left, int right>
  static void multiply_add() noexcept {}
};

bool processor_has_tiles() noexcept { return false; }
bool system_grants_tiles() noexcept { return false; }
#endif

}  // namespace

bool has_amx() noexcept {
  static const bool granted = simd_level() == SimdLevel::v4 && processor_has_tiles() && system_grants_tiles();
  return granted;
}

std::int64_t amx_packed_size(std::int64_t k, std::int64_t n) noexcept {
  return amx::blocks_of(n, amx::block_lines) * amx::lines_words(k) *
         static_cast<std::int64_t>(sizeof(std::uint32_t));
}

bool amx_pack(MatrixView<const float> b, void* packed) noexcept {
  return amx::split(amx::Role::right, b.t(), static_cast<std::uint32_t*>(packed), amx::lines_words(b.rows));
}

std::int64_t amx_packed_workspace() noexcept {
  return amx::workspace_words(amx::from_packed) * static_cast<std::int64_t>(sizeof(std::uint32_t));
}

std::int64_t amx_workspace() noexcept {
  return amx::workspace_words(amx::from_memory) * static_cast<std::int64_t>(sizeof(std::uint32_t));
}

void amx_packed_gemm(MatrixView<const float> a, const void* packed, float beta, MatrixView<float> c,
                     void* workspace) noexcept {
  amx::packed_product<ProcessorTiles>(a, static_cast<const std::uint32_t*>(packed), beta, c,
                                      static_cast<std::uint32_t*>(workspace));
}

void amx_gemm(MatrixView<const float> a, MatrixView<const float> b, float beta, MatrixView<float> c,
              void* workspace) noexcept {
  amx::product<ProcessorTiles>(a, b, beta, c, static_cast<std::uint32_t*>(workspace));
}

}  // namespace rill::kernels
