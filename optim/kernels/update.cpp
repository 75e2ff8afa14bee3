#include <rill/optim/kernels/update.h>

#include <rill/core/kernels/simd.h>

#include <cmath>

namespace rill::kernels {
namespace {

// The first line of every loop: the gradient with clipping and L2 decay.
template <class T>
RILL_INLINE T decayed(T grad, T scale, T param, T decay) noexcept {
  return scale * grad + decay * param;
}

template <class T>
RILL_KERNEL void sgd_plain(std::int64_t n, T* p, const T* grad, T scale, T decay, T lr) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) p[i] -= lr * decayed(grad[i], scale, p[i], decay);
}

template <class T, bool nesterov>
RILL_KERNEL void sgd_momentum(std::int64_t n, T* p, const T* grad, T* buffer, T scale, T decay, T lr,
                              T momentum, T keep, T look_ahead) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = decayed(grad[i], scale, p[i], decay);
    const T b = momentum * buffer[i] + keep * g;
    buffer[i] = b;
    p[i] -= lr * (nesterov ? g + look_ahead * b : b);
  }
}

template <class T>
struct AdamNumbers {
  explicit AdamNumbers(const AdamCoefficients& c) noexcept
      : scale(static_cast<T>(c.scale)),
        decay(static_cast<T>(c.decay)),
        shrink(static_cast<T>(c.shrink)),
        beta1(static_cast<T>(c.beta1)),
        rest1(static_cast<T>(1 - c.beta1)),
        beta2(static_cast<T>(c.beta2)),
        rest2(static_cast<T>(1 - c.beta2)),
        step_size(static_cast<T>(c.step_size)),
        root_scale(static_cast<T>(c.root_scale)),
        eps(static_cast<T>(c.eps)) {}
  T scale, decay, shrink, beta1, rest1, beta2, rest2, step_size, root_scale, eps;
};

template <class T, bool amsgrad>
RILL_KERNEL void adam_update(std::int64_t n, T* p, const T* grad, T* m, T* v, T* greatest,
                             AdamNumbers<T> c) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = decayed(grad[i], c.scale, p[i], c.decay);
    const T m_i = c.beta1 * m[i] + c.rest1 * g;
    const T v_i = c.beta2 * v[i] + c.rest2 * g * g;
    m[i] = m_i;
    v[i] = v_i;
    T root_of = v_i;
    if constexpr (amsgrad) {
      root_of = greatest[i] > v_i ? greatest[i] : v_i;
      greatest[i] = root_of;
    }
    p[i] = c.shrink * p[i] - c.step_size * m_i / (std::sqrt(root_of) * c.root_scale + c.eps);
  }
}

template <class T>
struct RmspropNumbers {
  explicit RmspropNumbers(const RmspropCoefficients& c) noexcept
      : scale(static_cast<T>(c.scale)),
        decay(static_cast<T>(c.decay)),
        lr(static_cast<T>(c.lr)),
        alpha(static_cast<T>(c.alpha)),
        rest(static_cast<T>(1 - c.alpha)),
        eps(static_cast<T>(c.eps)),
        momentum(static_cast<T>(c.momentum)) {}
  T scale, decay, lr, alpha, rest, eps, momentum;
};

template <class T, bool centered, bool with_momentum>
RILL_KERNEL void rmsprop_update(std::int64_t n, T* p, const T* grad, T* square, T* mean, T* buffer,
                                RmspropNumbers<T> c) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = decayed(grad[i], c.scale, p[i], c.decay);
    T s = c.alpha * square[i] + c.rest * g * g;
    square[i] = s;
    if constexpr (centered) {
      const T average = c.alpha * mean[i] + c.rest * g;
      mean[i] = average;
      s -= average * average;
      s = s < T(0) ? T(0) : s;  // rounding only; NaN is kept
    }
    T u = g / (std::sqrt(s) + c.eps);
    if constexpr (with_momentum) {
      u += c.momentum * buffer[i];
      buffer[i] = u;
    }
    p[i] -= c.lr * u;
  }
}

template <class T>
RILL_KERNEL void adagrad_update(std::int64_t n, T* p, const T* grad, T* sum, T scale, T decay, T lr,
                                T eps) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = decayed(grad[i], scale, p[i], decay);
    const T s = sum[i] + g * g;
    sum[i] = s;
    p[i] -= lr * g / (std::sqrt(s) + eps);
  }
}

template <class T>
RILL_KERNEL void adadelta_update(std::int64_t n, T* p, const T* grad, T* square, T* delta, T scale, T decay,
                                 T lr, T rho, T rest, T eps) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = decayed(grad[i], scale, p[i], decay);
    const T s = rho * square[i] + rest * g * g;
    const T u = std::sqrt(delta[i] + eps) / std::sqrt(s + eps) * g;
    square[i] = s;
    delta[i] = rho * delta[i] + rest * u * u;
    p[i] -= lr * u;
  }
}

}  // namespace

template <class T>
void sgd(const SgdCoefficients& c, const Arrays<T>& a) noexcept {
  const auto scale = static_cast<T>(c.scale);
  const auto decay = static_cast<T>(c.decay);
  const auto lr = static_cast<T>(c.lr);
  if (a.state[0] == nullptr) {
    sgd_plain(a.n, a.param, a.grad, scale, decay, lr);
    return;
  }
  const auto update = c.nesterov_momentum == 0 ? sgd_momentum<T, false> : sgd_momentum<T, true>;
  update(a.n, a.param, a.grad, a.state[0], scale, decay, lr, static_cast<T>(c.momentum),
         static_cast<T>(c.keep), static_cast<T>(c.nesterov_momentum));
}

template <class T>
void adam(const AdamCoefficients& c, const Arrays<T>& a) noexcept {
  const auto update = a.state[2] == nullptr ? adam_update<T, false> : adam_update<T, true>;
  update(a.n, a.param, a.grad, a.state[0], a.state[1], a.state[2], AdamNumbers<T>(c));
}

template <class T>
void rmsprop(const RmspropCoefficients& c, const Arrays<T>& a) noexcept {
  const bool centered = a.state[1] != nullptr;
  const bool momentum = a.state[2] != nullptr;
  const auto update = centered
                          ? (momentum ? rmsprop_update<T, true, true> : rmsprop_update<T, true, false>)
                          : (momentum ? rmsprop_update<T, false, true> : rmsprop_update<T, false, false>);
  update(a.n, a.param, a.grad, a.state[0], a.state[1], a.state[2], RmspropNumbers<T>(c));
}

template <class T>
void adagrad(const AdagradCoefficients& c, const Arrays<T>& a) noexcept {
  adagrad_update(a.n, a.param, a.grad, a.state[0], static_cast<T>(c.scale), static_cast<T>(c.decay),
                 static_cast<T>(c.lr), static_cast<T>(c.eps));
}

template <class T>
void adadelta(const AdadeltaCoefficients& c, const Arrays<T>& a) noexcept {
  adadelta_update(a.n, a.param, a.grad, a.state[0], a.state[1], static_cast<T>(c.scale),
                  static_cast<T>(c.decay), static_cast<T>(c.lr), static_cast<T>(c.rho),
                  static_cast<T>(1 - c.rho), static_cast<T>(c.eps));
}

template void sgd(const SgdCoefficients&, const Arrays<float>&) noexcept;
template void sgd(const SgdCoefficients&, const Arrays<double>&) noexcept;
template void adam(const AdamCoefficients&, const Arrays<float>&) noexcept;
template void adam(const AdamCoefficients&, const Arrays<double>&) noexcept;
template void rmsprop(const RmspropCoefficients&, const Arrays<float>&) noexcept;
template void rmsprop(const RmspropCoefficients&, const Arrays<double>&) noexcept;
template void adagrad(const AdagradCoefficients&, const Arrays<float>&) noexcept;
template void adagrad(const AdagradCoefficients&, const Arrays<double>&) noexcept;
template void adadelta(const AdadeltaCoefficients&, const Arrays<float>&) noexcept;
template void adadelta(const AdadeltaCoefficients&, const Arrays<double>&) noexcept;

}  // namespace rill::kernels
