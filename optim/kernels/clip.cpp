#include <rill/optim/kernels/clip.h>

#include <rill/core/kernels/simd.h>

#include <cmath>

namespace rill::kernels {
namespace {

template <class T>
RILL_KERNEL double abs_loop(std::int64_t n, const T* x) noexcept {
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) total += std::abs(static_cast<double>(x[i]));
  return total;
}

template <class T>
RILL_KERNEL double square_loop(std::int64_t n, const T* x) noexcept {
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return total;
}

template <class T>
RILL_KERNEL T max_loop(std::int64_t n, const T* x) noexcept {
  T greatest = 0;
  T not_a_number = 0;
#pragma omp simd reduction(max : greatest) reduction(+ : not_a_number)
  for (std::int64_t i = 0; i < n; ++i) {
    const T a = std::abs(x[i]);
    greatest = a > greatest ? a : greatest;
    not_a_number += a != a ? a : T(0);
  }
  return not_a_number != not_a_number ? not_a_number : greatest;
}

template <class T>
RILL_KERNEL void scale_loop(std::int64_t n, T* x, T factor) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

template <class T>
RILL_KERNEL void clamp_loop(std::int64_t n, T* x, T limit) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T below = x[i] > limit ? limit : x[i];
    x[i] = below < -limit ? -limit : below;
  }
}

}  // namespace

template <class T>
double sum_abs(std::int64_t n, const T* x) noexcept {
  return abs_loop(n, x);
}

template <class T>
double sum_squares(std::int64_t n, const T* x) noexcept {
  return square_loop(n, x);
}

template <class T>
double sum_powers(std::int64_t n, const T* x, double p) noexcept {
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += std::pow(std::abs(static_cast<double>(x[i])), p);
  return total;
}

template <class T>
double max_abs(std::int64_t n, const T* x) noexcept {
  return static_cast<double>(max_loop(n, x));
}

template <class T>
void scale_in_place(std::int64_t n, T* x, T factor) noexcept {
  scale_loop(n, x, factor);
}

template <class T>
void clamp_in_place(std::int64_t n, T* x, T limit) noexcept {
  clamp_loop(n, x, limit);
}

#define RILL_INSTANTIATE(T)                                            \
  template double sum_abs(std::int64_t, const T*) noexcept;            \
  template double sum_squares(std::int64_t, const T*) noexcept;        \
  template double sum_powers(std::int64_t, const T*, double) noexcept; \
  template double max_abs(std::int64_t, const T*) noexcept;            \
  template void scale_in_place(std::int64_t, T*, T) noexcept;          \
  template void clamp_in_place(std::int64_t, T*, T) noexcept;
RILL_INSTANTIATE(float)
RILL_INSTANTIATE(double)
#undef RILL_INSTANTIATE

}  // namespace rill::kernels
