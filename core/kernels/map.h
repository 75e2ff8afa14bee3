/// Loops over elements: the body is a functor with RILL_INLINE members, the loop is compiled for each
/// instruction set.
///
/// Every array has an element step (0 repeats one element, 1 is dense); dense runs are vectorised. Outputs
/// never overlap inputs unless they are the same run.
#pragma once

#include <cstdint>

#include <rill/core/kernels/math.h>
#include <rill/core/kernels/simd.h>

#pragma GCC visibility push(default)

namespace rill::kernels {

/// y[i] = op.forward(x[i]).
template <class Op, class T>
RILL_KERNEL void map(const Op& op, std::int64_t n, const T* x, std::int64_t sx, T* y,
                     std::int64_t sy) noexcept {
  if (sx == 1 && sy == 1) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = op.forward(x[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i * sy] = op.forward(x[i * sx]);
  }
}

/// to[i] = beta to[i] + op.backward(dy[i], kept[i]); beta is 0 (to is overwritten whatever it held) or 1.
template <class Op, class T>
RILL_KERNEL void map_backward(const Op& op, std::int64_t n, const T* dy, std::int64_t sdy, const T* kept,
                              std::int64_t sk, T beta, T* to, std::int64_t st) noexcept {
  if (sdy == 1 && sk == 1 && st == 1) {
    if (beta == 0) {
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) to[i] = op.backward(dy[i], kept[i]);
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) to[i] += op.backward(dy[i], kept[i]);
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = op.backward(dy[i * sdy], kept[i * sk]);
    to[i * st] = beta == 0 ? g : to[i * st] + g;
  }
}

/// y[i] = op.forward(a[i], b[i]), y dense.
template <class Op, class T>
RILL_KERNEL void map2(const Op& op, std::int64_t n, const T* a, std::int64_t sa, const T* b, std::int64_t sb,
                      T* y) noexcept {
  if (sa == 1 && sb == 1) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = op.forward(a[i], b[i]);
  } else if (sa == 1 && sb == 0) {
    const T right = *b;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = op.forward(a[i], right);
  } else if (sa == 0 && sb == 1) {
    const T left = *a;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = op.forward(left, b[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = op.forward(a[i * sa], b[i * sb]);
  }
}

/// to[i] = beta to[i] + op.forward(dy[i], a[i], b[i]); beta is 0 or 1.
template <class Op, class T>
RILL_KERNEL void map3(const Op& op, std::int64_t n, const T* dy, std::int64_t sdy, const T* a,
                      std::int64_t sa, const T* b, std::int64_t sb, T beta, T* to, std::int64_t st) noexcept {
  if (sdy == 1 && sa == 1 && sb == 1 && st == 1) {
    if (beta == 0) {
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) to[i] = op.forward(dy[i], a[i], b[i]);
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) to[i] += op.forward(dy[i], a[i], b[i]);
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = op.forward(dy[i * sdy], a[i * sa], b[i * sb]);
    to[i * st] = beta == 0 ? g : to[i * st] + g;
  }
}

}  // namespace rill::kernels

#pragma GCC visibility pop
