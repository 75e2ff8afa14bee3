#include <rill/optim/clip.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <rill/core/error.h>
#include <rill/core/parallel.h>
#include <rill/optim/kernels/clip.h>

namespace rill::optim {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<Tensor> gradients_of(const char* op, const Parameters& parameters) {
  std::vector<Tensor> gradients;
  for (const auto& [name, t] : parameters) {
    check(t.defined(), "{}: parameter {} '{}' is undefined", op, gradients.size(), name);
    gradients.push_back(t.grad());
  }
  return gradients;
}

/// What one piece adds to the sum (or maximum) that the norm is the root of.
template <class T>
double piece_norm(std::int64_t n, const T* x, double p) noexcept {
  if (p == 2) return kernels::sum_squares(n, x);
  if (p == 1) return kernels::sum_abs(n, x);
  return p == infinity ? kernels::max_abs(n, x) : kernels::sum_powers(n, x, p);
}

/// Calls f(numbers, n) for dense runs that together hold each number of the gradients once, in parallel.
template <class F>
void change_gradients(const detail::Runs& runs, std::vector<Tensor>& gradients, const F& f) {
  for (Tensor& g : gradients) {
    if (g.defined()) g.impl().storage->bump_version();
  }
  const FlushDenormals flush;
  runs.for_each([&](const detail::Piece& piece) {
    const Tensor& g = gradients[piece.tensor];
    visit_floating("clip", g.dtype(), [&]<class T>(Type<T>) {
      f(reinterpret_cast<T*>(detail::address(g, piece.offset)), piece.size);
    });
  });
}

}  // namespace

namespace detail {

double norm_of(const Runs& runs, const std::vector<Tensor>& gradients, double norm_type) {
  check(norm_type > 0, "grad_norm: norm_type is {}; it must be above 0", norm_type);
  std::vector<double> blocks(static_cast<std::size_t>(runs.blocks()), 0.0);
  const FlushDenormals flush;
  runs.for_each([&](const Piece& piece) {
    const Tensor& g = gradients[piece.tensor];
    if (!g.defined()) return;
    double& sum = blocks[static_cast<std::size_t>(piece.block)];
    visit_floating("grad_norm", g.dtype(), [&]<class T>(Type<T>) {
      const double part =
          piece_norm(piece.size, reinterpret_cast<const T*>(address(g, piece.offset)), norm_type);
      sum = norm_type == infinity ? (part > sum || part != part ? part : sum) : sum + part;
    });
  });
  double total = 0;
  for (double part : blocks)
    total = norm_type == infinity ? (part > total || part != part ? part : total) : total + part;
  if (norm_type == 2) return std::sqrt(total);
  return norm_type == 1 || norm_type == infinity ? total : std::pow(total, 1 / norm_type);
}

double clip_factor(const char* op, double norm, double max_norm) {
  check(max_norm >= 0, "{}: max_norm is {}; it must be at least 0", op, max_norm);
  return std::min(1.0, max_norm / (norm + 1e-6));
}

}  // namespace detail

double grad_norm(const Parameters& parameters, double norm_type) {
  const std::vector<Tensor> gradients = gradients_of("grad_norm", parameters);
  return detail::norm_of(detail::Runs::without_repeats(gradients), gradients, norm_type);
}

double clip_grad_norm_(const Parameters& parameters, double max_norm, double norm_type) {
  std::vector<Tensor> gradients = gradients_of("clip_grad_norm_", parameters);
  const auto runs = detail::Runs::without_repeats(gradients);
  const double norm = detail::norm_of(runs, gradients, norm_type);
  const double factor = detail::clip_factor("clip_grad_norm_", norm, max_norm);
  if (std::isfinite(norm) && factor < 1) {
    change_gradients(runs, gradients, [factor]<class T>(T* x, std::int64_t n) {
      kernels::scale_in_place(n, x, static_cast<T>(factor));
    });
  }
  return norm;
}

void clip_grad_value_(const Parameters& parameters, double clip_value) {
  check(clip_value >= 0, "clip_grad_value_: clip_value is {}; it must be at least 0", clip_value);
  std::vector<Tensor> gradients = gradients_of("clip_grad_value_", parameters);
  change_gradients(detail::Runs::without_repeats(gradients), gradients,
                   [clip_value]<class T>(T* x, std::int64_t n) {
                     kernels::clamp_in_place(n, x, static_cast<T>(clip_value));
                   });
}

}  // namespace rill::optim
