// A fused op with a custom kernel: SwiGLU (Shazeer 2020, "GLU variants improve transformer"), tested against
// its definition and by gradcheck.
#include <cmath>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include <rill/core/extend.h>
#include <rill/rill.h>

namespace {

using rill::Tensor;
namespace math = rill::kernels::math;

namespace reference {
/// y = silu(x·A) ∘ (x·B) with w = [A B]: x [N, I], w [I, 2H] → [N, H], composed of core ops.
Tensor swiglu(const Tensor& x, const Tensor& w) {
  const Tensor g = rill::matmul(x, w);
  const std::int64_t h = g.size(1) / 2;
  return rill::silu(g.narrow(1, 0, h)) * g.narrow(1, h, h);
}
}  // namespace reference

// --- kernels: one row of gates g = [a b]; serial, on pointers, compiled for each instruction set

/// y [n] = a σ(a) b.
template <class T>
RILL_KERNEL void forward_row(std::int64_t n, const T* g, T* y) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = g[i] * math::sigmoid(g[i]) * g[n + i];
}

/// dg [2n]: da = dy b σ(a) (1 + a (1 - σ(a))) and db = dy a σ(a).
template <class T>
RILL_KERNEL void backward_row(std::int64_t n, const T* dy, const T* g, T* dg) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T a = g[i], s = math::sigmoid(a);
    dg[i] = dy[i] * g[n + i] * s * (1 + a * (1 - s));
    dg[n + i] = dy[i] * a * s;
  }
}

// --- the op: checks, allocates, runs kernels on the team of threads, records its gradient

/// Calls f(row) for each of `rows` rows of h elements; a chunk takes about 10 µs.
template <class F>
void each_row(std::int64_t rows, std::int64_t h, const F& f) {
  rill::parallel_for(rows, 1 + 8192 / (h + 1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) f(row);
  });
}

/// The gates' gradient [N, 2H] of dy [N, H].
template <class T>
Tensor gates_gradient(const Tensor& dy, const T* gates) {
  const std::int64_t rows = dy.size(0), h = dy.size(1);
  Tensor dg = rill::empty({rows, 2 * h}, dy.dtype());
  const T* from = dy.data<T>();
  T* to = dg.mutable_data<T>();
  each_row(rows, h,
           [&](std::int64_t row) { backward_row(h, from + row * h, gates + row * 2 * h, to + row * 2 * h); });
  return dg;
}

/// reference::swiglu with one pass over the gates. Backward: dg by the kernel, dx = dg·wᵀ, dw = xᵀ·dg.
Tensor swiglu(const Tensor& x, const Tensor& w) {
  constexpr const char* op = "swiglu";
  rill::check(x.dim() == 2 && w.dim() == 2 && x.size(1) == w.size(0) && w.size(1) % 2 == 0,
              "swiglu: x {} and w {} do not fit; pass [N, I] and [I, 2H]", x.shape(), w.shape());
  rill::check(x.dtype() == w.dtype(), "swiglu: dtypes {} and {} differ; use .to({})", name(x.dtype()),
              name(w.dtype()), name(x.dtype()));
  const std::int64_t rows = x.size(0), h = w.size(1) / 2;
  Tensor g = rill::empty({rows, 2 * h}, x.dtype()), y = rill::empty({rows, h}, x.dtype());
  return rill::visit_floating(op, x.dtype(), [&]<class T>(rill::Type<T>) {
    rill::matmul_into({.to = g}, x, w);
    const T* from = g.data<T>();
    T* to = y.mutable_data<T>();
    each_row(rows, h, [&](std::int64_t row) { forward_row(h, from + row * 2 * h, to + row * h); });
    return rill::record(op, y, {x, w},
                        [x = rill::Saved(x, op), w = rill::Saved(w, op), g = rill::Saved(g, op)](
                            const Tensor& dy, rill::Grads& d) {
                          const Tensor dg = gates_gradient(dy.contiguous(), g.data<T>());
                          if (auto dx = d[0]) rill::matmul_into(dx.slot(), dg, w().t());
                          if (auto dw = d[1]) rill::matmul_into(dw.slot(), x().t(), dg);
                        });
  });
}

}  // namespace

int main() try {
  rill::Rng rng(1);
  const Tensor x = rill::randn({5, 6}, rng, rill::float64).set_requires_grad();
  const Tensor w = rill::randn({6, 14}, rng, rill::float64).set_requires_grad();
  const auto f = [](const std::vector<Tensor>& in) { return std::vector{swiglu(in[0], in[1])}; };
  const rill::GradcheckReport report = rill::gradcheck(f, {x, w});
  fmt::print("swiglu: {} gradients, worst error {:.1e}: {}\n", report.elements, report.worst,
             report.ok ? "ok" : report.message);

  const double apart = rill::amax(rill::abs(swiglu(x, w) - reference::swiglu(x, w))).item();
  const Tensor large = rill::randn({300, 64}, rng), weight = rill::randn({64, 256}, rng);  // several threads
  const double rounding =
      rill::amax(rill::abs(swiglu(large, weight) - reference::swiglu(large, weight))).item();
  fmt::print("from its definition: {:.1e} in float64, {:.1e} in float32\n", apart, rounding);
  return report.ok && apart < 1e-12 && rounding < 1e-3 ? 0 : 1;
} catch (const rill::Error& error) {
  fmt::print(stderr, "fast_op: {}\n", error.what());
  return 1;
}
