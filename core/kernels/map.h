/// Pointwise loops over dense arrays, compiled for each instruction set. The body is a functor whose call
/// operator is RILL_INLINE.
#pragma once

#include <cstdint>

#include <rill/core/kernels/simd.h>

#pragma GCC visibility push(default)

namespace rill::kernels {

/// to[i] = f(from[0][i], …) for i < n, where `f` points to the functor. `to` may be one of the inputs.
using DenseLoop = void (*)(const void* f, std::int64_t n, const void* const* from, void* to);

/// The DenseLoop of a functor F with one input: of elements A to elements Y.
template <class F, class Y, class A>
RILL_KERNEL void map1(const void* f, std::int64_t n, const void* const* from, void* to) noexcept {
  const F& each = *static_cast<const F*>(f);
  const A* const a = static_cast<const A*>(from[0]);
  Y* const y = static_cast<Y*>(to);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = each(a[i]);
}

/// With two inputs.
template <class F, class Y, class A, class B>
RILL_KERNEL void map2(const void* f, std::int64_t n, const void* const* from, void* to) noexcept {
  const F& each = *static_cast<const F*>(f);
  const A* const a = static_cast<const A*>(from[0]);
  const B* const b = static_cast<const B*>(from[1]);
  Y* const y = static_cast<Y*>(to);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = each(a[i], b[i]);
}

/// With three inputs.
template <class F, class Y, class A, class B, class C>
RILL_KERNEL void map3(const void* f, std::int64_t n, const void* const* from, void* to) noexcept {
  const F& each = *static_cast<const F*>(f);
  const A* const a = static_cast<const A*>(from[0]);
  const B* const b = static_cast<const B*>(from[1]);
  const C* const c = static_cast<const C*>(from[2]);
  Y* const y = static_cast<Y*>(to);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = each(a[i], b[i], c[i]);
}

}  // namespace rill::kernels

#pragma GCC visibility pop
