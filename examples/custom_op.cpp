// Custom ops in both forms, verified by gradcheck.
#include <cmath>

#include <fmt/format.h>

#include <rill/core/extend.h>
#include <rill/rill.h>

namespace {

using rill::Tensor;

/// Pointwise: declare the two formulas; `unary` supplies loops, SIMD and threads.
/// mish(x) = x · tanh(softplus(x)) (Misra 2019).
struct Mish {
  static constexpr const char* name = "mish";
  static constexpr rill::Keeps keeps = rill::Keeps::input;
  template <class T>
  RILL_INLINE T forward(T x) const {
    return x * std::tanh(std::log1p(std::exp(x)));
  }
  template <class T>
  RILL_INLINE T backward(T dy, T x) const {
    const T t = std::tanh(std::log1p(std::exp(x)));
    const T sigmoid = 1 / (1 + std::exp(-x));
    return dy * (t + x * (1 - t * t) * sigmoid);
  }
};

Tensor mish(const Tensor& x) { return rill::unary(Mish{}, x); }

/// Anything else: compute the result, then `record` the backward pass. The sum of squared differences of
/// adjacent elements along the last dimension: x [.., N] → [].
Tensor roughness(const Tensor& x) {
  const auto neighbours = [](const Tensor& t) {
    const std::int64_t n = t.size(-1) - 1;
    return rill::sub(t.narrow(-1, 1, n), t.narrow(-1, 0, n));
  };
  rill::check(x.dim() > 0 && x.size(-1) > 0, "roughness: a tensor of shape {} has no neighbours", x.shape());
  Tensor y;
  {
    const rill::NoGrad no_grad;
    y = rill::sum(rill::square(neighbours(x)));
  }
  return rill::record("roughness", y, {x},
                      [x = rill::Saved(x, "roughness"), neighbours](const Tensor& dy, rill::Grads& d) {
                        const Tensor step = neighbours(x()) * (2 * dy.item());
                        Tensor dx = d[0].zeroed();
                        dx.narrow(-1, 1, step.size(-1)).add_(step);
                        dx.narrow(-1, 0, step.size(-1)).add_(step, -1);
                      });
}

bool prove(const char* name, Tensor (*op)(const Tensor&), const Tensor& input) {
  const auto f = [op](const std::vector<Tensor>& in) { return std::vector{op(in[0])}; };
  const rill::GradcheckReport report = rill::gradcheck(f, {input});
  fmt::print("{:10} {} gradients, worst error {:.1e}: {}\n", name, report.elements, report.worst,
             report.ok ? "ok" : report.message);
  return report.ok;
}

}  // namespace

int main() try {
  rill::Rng rng(1);
  const Tensor x = rill::randn({3, 4}, rng, rill::float64).set_requires_grad();
  fmt::print("mish(x)      = {}\nroughness(x) = {}\n\n", mish(x), roughness(x));
  const bool ok = prove("mish", mish, x) & prove("roughness", roughness, x);
  return ok ? 0 : 1;
} catch (const rill::Error& error) {
  fmt::print(stderr, "custom_op: {}\n", error.what());
  return 1;
}
