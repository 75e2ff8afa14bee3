#include <rill/nn/attention/attention_kernels.h>

#include <rill/core/kernels/math.h>
#include <rill/core/kernels/reduce.h>
#include <rill/core/kernels/simd.h>

#include <algorithm>

namespace rill::kernels {
namespace {

template <class T>
RILL_KERNEL void scores_kernel(std::int64_t positions, std::int64_t n, const T* keys, std::int64_t stride,
                               const T* query, const T* v, T* scores) noexcept {
  for (std::int64_t s = 0; s < positions; ++s) {
    const T* key = keys + s * stride;
    T total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t i = 0; i < n; ++i) total += v[i] * math::tanh(query[i] + key[i]);
    scores[s] = total;
  }
}

// y = Σ_s factors[s] x[s], four rows at a time, so that y is read and written a quarter as often.
template <class T>
RILL_KERNEL void weighted_rows(std::int64_t rows, std::int64_t n, const T* factors, const T* x,
                               std::int64_t stride, T* y) noexcept {
  for (std::int64_t i = 0; i < n; ++i) y[i] = 0;
  std::int64_t s = 0;
  for (; s + 4 <= rows; s += 4) {
    const T* a = x + s * stride;
    const T* b = a + stride;
    const T* c = b + stride;
    const T* d = c + stride;
    const T fa = factors[s], fb = factors[s + 1], fc = factors[s + 2], fd = factors[s + 3];
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] += (fa * a[i] + fb * b[i]) + (fc * c[i] + fd * d[i]);
  }
  for (; s < rows; ++s) {
    const T* a = x + s * stride;
    const T factor = factors[s];
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] += factor * a[i];
  }
}

template <class T>
RILL_KERNEL void dots(std::int64_t rows, std::int64_t n, const T* x, std::int64_t stride, const T* y,
                      T* out) noexcept {
  for (std::int64_t s = 0; s < rows; ++s) {
    const T* a = x + s * stride;
    T total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t i = 0; i < n; ++i) total += a[i] * y[i];
    out[s] = total;
  }
}

// From the gradient of one score to those of query, v and, if required, key.
template <bool with_key, class T>
RILL_KERNEL void score_backward(std::int64_t n, T dscore, const T* key, const T* query, const T* v, T* dquery,
                                T* dv, T* dkey) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T t = math::tanh(query[i] + key[i]);
    const T slope = dscore * v[i] * (T(1) - t * t);
    dquery[i] += slope;
    dv[i] += dscore * t;
    if constexpr (with_key) dkey[i] += slope;
  }
}

}  // namespace

template <class T>
void attend(const AttentionSource<T>& source, const T* query, const T* v, T* weights, T* context) noexcept {
  scores_kernel(source.positions, source.size, source.keys, source.key_stride, query, v, weights);
  row_softmax(weights, weights, source.positions);
  weighted_rows(source.positions, source.width, weights, source.values, source.value_stride, context);
}

template <class T>
void attend_backward(const AttentionSource<T>& source, const T* query, const T* v, const T* weights,
                     const T* dcontext, const T* dweights, T* dscores,
                     const AttentionGradients<T>& to) noexcept {
  dots(source.positions, source.width, source.values, source.value_stride, dcontext, dscores);
  if (dweights != nullptr) {
    for (std::int64_t s = 0; s < source.positions; ++s) dscores[s] += dweights[s];
  }
  row_softmax_backward(weights, dscores, T(0), dscores, source.positions);
  std::fill(to.query, to.query + source.size, T(0));
  for (std::int64_t s = 0; s < source.positions; ++s) {
    const T* key = source.keys + s * source.key_stride;
    if (to.keys != nullptr) {
      score_backward<true>(source.size, dscores[s], key, query, v, to.query, to.v,
                           to.keys + s * to.key_stride);
    } else {
      score_backward<false, T>(source.size, dscores[s], key, query, v, to.query, to.v, nullptr);
    }
  }
}

template void attend<float>(const AttentionSource<float>&, const float*, const float*, float*,
                            float*) noexcept;
template void attend<double>(const AttentionSource<double>&, const double*, const double*, double*,
                             double*) noexcept;
template void attend_backward<float>(const AttentionSource<float>&, const float*, const float*, const float*,
                                     const float*, const float*, float*,
                                     const AttentionGradients<float>&) noexcept;
template void attend_backward<double>(const AttentionSource<double>&, const double*, const double*,
                                      const double*, const double*, const double*, double*,
                                      const AttentionGradients<double>&) noexcept;

}  // namespace rill::kernels
