/// The update formulas of the optimisers: one pass over parameter, gradient and state, in which each element
/// is read and written once.
///
/// Plain arrays of n elements, single-threaded, without allocation. Coefficients are computed in double once
/// per step; the arithmetic uses T. Instantiated for float and double. In the formulas g = scale · gradient +
/// decay · p.
#pragma once

#include <array>
#include <cstdint>

namespace rill::kernels {

/// The arrays of one update. `state` has the arrays named in the formula, in that order; unused ones are
/// null.
template <class T>
struct Arrays {
  std::int64_t n = 0;
  T* param = nullptr;
  const T* grad = nullptr;
  std::array<T*, 3> state{};
};

/// buffer = momentum · buffer + keep · g; p -= lr · (g + nesterov_momentum · buffer), or lr · buffer when
/// that is 0. Without a buffer p -= lr · g. State: buffer.
struct SgdCoefficients {
  double scale, decay, lr, momentum, keep, nesterov_momentum;
};
template <class T>
void sgd(const SgdCoefficients& c, const Arrays<T>& a) noexcept;

/// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g²; p = shrink · p - step_size · m / (√v ·
/// root_scale + eps), with the largest v so far in place of v if there is a third state. State: m, v, largest
/// v.
struct AdamCoefficients {
  double scale, decay, shrink, beta1, beta2, step_size, root_scale, eps;
};
template <class T>
void adam(const AdamCoefficients& c, const Arrays<T>& a) noexcept;

/// s = alpha s + (1 - alpha) g²; with a mean, mean = alpha mean + (1 - alpha) g and mean² is subtracted from
/// s under the root; u = g / (√s + eps); with a buffer, buffer = momentum · buffer + u is u; p -= lr · u.
/// State: s, mean, buffer.
struct RmspropCoefficients {
  double scale, decay, lr, alpha, eps, momentum;
};
template <class T>
void rmsprop(const RmspropCoefficients& c, const Arrays<T>& a) noexcept;

/// sum += g²; p -= lr · g / (√sum + eps). State: sum.
struct AdagradCoefficients {
  double scale, decay, lr, eps;
};
template <class T>
void adagrad(const AdagradCoefficients& c, const Arrays<T>& a) noexcept;

/// s = rho s + (1 - rho) g²; u = g · √(d + eps) / √(s + eps); d = rho d + (1 - rho) u²; p -= lr · u. State:
/// s, d.
struct AdadeltaCoefficients {
  double scale, decay, lr, rho, eps;
};
template <class T>
void adadelta(const AdadeltaCoefficients& c, const Arrays<T>& a) noexcept;

}  // namespace rill::kernels
