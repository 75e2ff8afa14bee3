#include <rill/core/kernels/dropout.h>

#include <rill/core/kernels/simd.h>

namespace rill::kernels {
namespace {

template <class T>
RILL_KERNEL void multiply(const T* x, const T* mask, T* y, std::int64_t n) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * mask[i];
}

template <class T>
RILL_KERNEL void note(const T* mask, std::uint8_t* kept, std::int64_t n) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) kept[i] = mask[i] != 0 ? 1 : 0;
}

template <bool add, class T>
RILL_KERNEL void pass(const T* dy, const std::uint8_t* kept, T scale, T* dx, std::int64_t n) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T v = dy[i] * (scale * static_cast<T>(kept[i]));
    dx[i] = add ? dx[i] + v : v;
  }
}

}  // namespace

template <class T>
void apply_mask(const T* x, const T* mask, T* y, std::uint8_t* kept, std::int64_t n) noexcept {
  multiply(x, mask, y, n);
  if (kept) note(mask, kept, n);
}

template <class T>
void pass_kept(const T* dy, const std::uint8_t* kept, T scale, T beta, T* dx, std::int64_t n) noexcept {
  if (beta == T(0)) {
    pass<false>(dy, kept, scale, dx, n);
  } else {
    pass<true>(dy, kept, scale, dx, n);
  }
}

#define RILL_INSTANTIATE(T)                                                                  \
  template void apply_mask<T>(const T*, const T*, T*, std::uint8_t*, std::int64_t) noexcept; \
  template void pass_kept<T>(const T*, const std::uint8_t*, T, T, T*, std::int64_t) noexcept;
RILL_INSTANTIATE(float)
RILL_INSTANTIATE(double)
#undef RILL_INSTANTIATE

}  // namespace rill::kernels
