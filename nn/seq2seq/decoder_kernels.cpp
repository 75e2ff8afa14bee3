#include <rill/nn/seq2seq/decoder_kernels.h>

#include <rill/core/kernels/simd.h>

namespace rill::kernels {
namespace {

template <class T>
RILL_KERNEL void forward_kernel(std::int64_t n, const T* x, T* y) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] < T(0) ? T(0) : x[i];
}

template <class T>
RILL_KERNEL void backward_kernel(std::int64_t n, const T* x, const T* dy, T* dx) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dx[i] += x[i] > T(0) ? dy[i] : T(0);
}

}  // namespace

template <class T>
void relu_row(std::int64_t n, const T* x, T* y) noexcept {
  forward_kernel<T>(n, x, y);
}

template <class T>
void relu_row_backward(std::int64_t n, const T* x, const T* dy, T* dx) noexcept {
  backward_kernel<T>(n, x, dy, dx);
}

template void relu_row<float>(std::int64_t, const float*, float*) noexcept;
template void relu_row<double>(std::int64_t, const double*, double*) noexcept;
template void relu_row_backward<float>(std::int64_t, const float*, const float*, float*) noexcept;
template void relu_row_backward<double>(std::int64_t, const double*, const double*, double*) noexcept;

}  // namespace rill::kernels
