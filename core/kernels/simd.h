/// Kernels compiled for several instruction sets in one binary and selected at run time.
///
/// A kernel is a plain loop over branch-free arithmetic marked `#pragma omp simd`, in a leaf function marked
/// RILL_KERNEL. The compiler makes a copy of the function for each level and the loader picks one.
///
/// Functions that a kernel calls must be RILL_INLINE, including lambdas and functors: a call that is not
/// inlined runs at the baseline level and is slow, and a function with definitions at different levels could
/// crash on older processors. A kernel template is local to its source file; other files call an ordinary
/// function that wraps it.
#pragma once

/// Compiles one function for a given processor, regardless of the flags of the file.
#if defined(RILL_SIMD_NATIVE)
#define RILL_TARGET(arch_)  // everything is compiled for this machine; instruction sets cannot be mixed
#else
#define RILL_TARGET(arch_) __attribute__((target("arch=" arch_)))
#endif

/// @def RILL_KERNEL
/// Marks a kernel: compiled for each level and dispatched to the level of the processor.
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

/// Marks functions that kernels call: inlined, hence compiled at the caller's level.
#define RILL_INLINE __attribute__((always_inline)) inline

/// RILL_INLINE for a lambda that a kernel calls: `[](float x) RILL_INLINE_LAMBDA {…}`.
#define RILL_INLINE_LAMBDA __attribute__((always_inline))

#pragma GCC visibility push(default)

namespace rill::kernels {

/// Levels of the x86-64 instruction set: SSE2, AVX2 with FMA, AVX-512. Other processors have only `baseline`.
enum class SimdLevel { baseline, v3, v4 };

/// The highest level that the processor and operating system support, at most the one the build is fixed to.
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
