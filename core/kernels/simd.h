/// One binary for all instruction sets: loops compiled for each, chosen at run time.
///
/// A kernel is a plain loop over branch-free arithmetic marked `#pragma omp simd`, in a leaf function marked
/// RILL_KERNEL. The compiler makes a copy of the function for each level and the loader picks one.
///
/// Functions that a kernel calls must be RILL_INLINE, lambdas and functors included: a call that is not
/// inlined stays at the baseline level (and is slow), and one function with two definitions at different
/// levels would be a crash on old machines. A kernel that is a template is local to its source file: what
/// others call is a plain function around it.
#pragma once

/// Compiles one function for a given processor, whatever the file is compiled for.
#if defined(RILL_SIMD_NATIVE)
#define RILL_TARGET(arch_)  // all is compiled for this machine, and other instruction sets cannot be mixed in
#else
#define RILL_TARGET(arch_) __attribute__((target("arch=" arch_)))
#endif

/// @def RILL_KERNEL
/// Marks a kernel: compiled for each level, the one of this processor runs.
#if defined(RILL_SIMD_BASELINE) || defined(RILL_SIMD_NATIVE)
#define RILL_KERNEL
#elif defined(RILL_SIMD_V3)
#define RILL_KERNEL RILL_TARGET("x86-64-v3")
#elif defined(RILL_SIMD_V4)
#define RILL_KERNEL RILL_TARGET("x86-64-v4")
#elif defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__)
// ThreadSanitizer cannot start a program with resolvers, and clang 14 has no target_clones on templates.
#define RILL_SIMD_DISPATCH
#define RILL_KERNEL __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define RILL_KERNEL
#endif

/// For what kernels call: part of the caller's code, hence at the caller's level.
#define RILL_INLINE __attribute__((always_inline)) inline

/// The same for a lambda that a kernel calls: `[](float x) RILL_INLINE_LAMBDA {…}`.
#define RILL_INLINE_LAMBDA __attribute__((always_inline))

#pragma GCC visibility push(default)

namespace rill::kernels {

/// Levels of the x86-64 instruction set: SSE2, AVX2 with FMA, AVX-512. Other processors have only `baseline`.
enum class SimdLevel { baseline, v3, v4 };

/// The highest level this processor and operating system offer, up to the one the build was fixed to.
inline SimdLevel cpu_simd_level() noexcept {
#if defined(RILL_SIMD_BASELINE) || !defined(__x86_64__)
  return SimdLevel::baseline;
#elif defined(RILL_SIMD_V3) || (defined(RILL_SIMD_NATIVE) && defined(__AVX2__) && !defined(__AVX512VL__))
  return SimdLevel::v3;
#elif defined(RILL_SIMD_V4) || (defined(RILL_SIMD_NATIVE) && defined(__AVX512VL__))
  return SimdLevel::v4;
#else
  const bool v3 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? SimdLevel::v4 : v3 ? SimdLevel::v3 : SimdLevel::baseline;
#endif
}

/// The level at which RILL_KERNEL functions run in this process.
inline SimdLevel simd_level() noexcept {
#if defined(RILL_SIMD_DISPATCH) || defined(RILL_SIMD_V3) || defined(RILL_SIMD_V4) || defined(RILL_SIMD_NATIVE)
  return cpu_simd_level();
#else
  return SimdLevel::baseline;
#endif
}

}  // namespace rill::kernels

#pragma GCC visibility pop
