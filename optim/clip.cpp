#include <rill/optim/clip.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <unordered_set>
#include <vector>

#include <rill/core/error.h>
#include <rill/core/parallel.h>
#include <rill/optim/kernels/clip.h>
#include <rill/optim/norm.h>

namespace rill::optim {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The existing gradients of the parameters, each once.
std::vector<Tensor> gradients_of(const char* op, const Parameters& parameters) {
  std::vector<Tensor> gradients;
  std::unordered_set<const TensorImpl*> seen;
  std::size_t index = 0;
  for (const auto& [name, t] : parameters) {
    check(t.defined(), "{}: parameter {} '{}' is undefined", op, index, name);
    check(t.is_leaf() && t.is_contiguous(), "{}: parameter {} '{}' is a view or result; pass the leaf", op,
          index, name);
    ++index;
    if (const Tensor g = t.grad(); g.defined() && seen.insert(g.ref().get()).second) gradients.push_back(g);
  }
  return gradients;
}

/// The contribution of one chunk to the sum (or maximum) under the root of the norm.
template <class T>
double chunk_norm(std::int64_t n, const T* x, double p) noexcept {
  if (p == 2) return kernels::sum_squares(n, x);
  if (p == 1) return kernels::sum_abs(n, x);
  return p == infinity ? kernels::max_abs(n, x) : kernels::sum_powers(n, x, p);
}

/// Calls f(elements, n) for all chunks of the gradients, in parallel.
template <class F>
void change_gradients(const detail::Flat& flat, const std::vector<Tensor>& gradients, const F& f) {
  for (const Tensor& g : gradients) g.impl().storage->bump_version();
  const FlushDenormals flush;
  flat.for_each([&](const detail::Chunk& chunk) {
    const Tensor& g = gradients[chunk.tensor];
    visit_floating("clip", g.dtype(),
                   [&]<class T>(Type<T>) { f(detail::address<T>(g, chunk.offset), chunk.size); });
  });
}

}  // namespace

namespace detail {

double norm_of(const Flat& flat, const std::vector<Tensor>& gradients, double norm_type) {
  check(norm_type > 0, "grad_norm: norm_type is {}; it must be above 0", norm_type);
  std::vector<double> blocks(static_cast<std::size_t>(flat.blocks()), 0.0);
  const FlushDenormals flush;
  flat.for_each([&](const Chunk& chunk) {
    const Tensor& g = gradients[chunk.tensor];
    if (!g.defined()) return;
    double& sum = blocks[static_cast<std::size_t>(chunk.block)];
    visit_floating("grad_norm", g.dtype(), [&]<class T>(Type<T>) {
      const double part = chunk_norm(chunk.size, address<const T>(g, chunk.offset), norm_type);
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
  return detail::norm_of(detail::Flat(gradients), gradients, norm_type);
}

double clip_grad_norm_(const Parameters& parameters, double max_norm, double norm_type) {
  const std::vector<Tensor> gradients = gradients_of("clip_grad_norm_", parameters);
  const detail::Flat flat(gradients);
  const double norm = detail::norm_of(flat, gradients, norm_type);
  const double factor = detail::clip_factor("clip_grad_norm_", norm, max_norm);
  if (std::isfinite(norm) && factor < 1) {
    change_gradients(flat, gradients, [factor]<class T>(T* x, std::int64_t n) {
      kernels::scale_in_place(n, x, static_cast<T>(factor));
    });
  }
  return norm;
}

void clip_grad_value_(const Parameters& parameters, double clip_value) {
  check(clip_value >= 0, "clip_grad_value_: clip_value is {}; it must be at least 0", clip_value);
  const std::vector<Tensor> gradients = gradients_of("clip_grad_value_", parameters);
  change_gradients(detail::Flat(gradients), gradients, [clip_value]<class T>(T* x, std::int64_t n) {
    kernels::clamp_in_place(n, x, static_cast<T>(clip_value));
  });
}

}  // namespace rill::optim
