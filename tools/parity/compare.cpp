#include <parity/compare.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <rill/core/format.h>

namespace rill::parity {
namespace {

constexpr double float32_epsilon = 1.0 / (1 << 23);
/// For cases without a figure of PyTorch's float32.
constexpr Tolerance float32_default{.rtol = 1e-4, .atol = 1e-5};

std::string index_text(std::int64_t flat, const Shape& shape) {
  Dims index = Dims::filled(shape.size(), 0);
  for (int d = shape.size(); d-- > 0;) {
    index[d] = flat % shape[d];
    flat /= shape[d];
  }
  return fmt::format("{}", index);
}

/// Error of a value: 0 if within the bound, else by how much it exceeds it; infinite for NaN and wrong
/// infinities.
double excess(double got, double want, const Bound& bound) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (got == want) return 0;
  if (!std::isfinite(got) || !std::isfinite(want)) return infinity;
  const double error = std::abs(got - want);
  return error <= bound(want) ? 0 : error;
}

double largest(const Tensor& t) {
  double most = 0;
  for (double v : t.to_vector<double>()) {
    if (std::isfinite(v)) most = std::max(most, std::abs(v));
  }
  return most;
}

Bound bound_of(const Case& c, const Tensor& want, DType dtype) {
  if (!is_floating(want.dtype())) return {};
  if (dtype == float64 || c.kind == "schedule") return {.rtol = c.tolerance.rtol, .floor = c.tolerance.atol};
  const std::optional<double> error = c.kind == "train" ? c.float32_loss_error : c.float32_error;
  if (!error) return {.rtol = float32_default.rtol, .floor = float32_default.atol};
  return {.absolute = std::max(10 * *error, 8 * float32_epsilon * largest(want))};
}

}  // namespace

double Bound::operator()(double want) const noexcept {
  return std::max(floor + rtol * std::abs(want), absolute);
}

std::optional<std::string> difference(const std::string& name, const Tensor& got, const Tensor& want,
                                      const Bound& bound) {
  if (got.shape() != want.shape()) {
    return fmt::format("{}: got shape {}, want {}", name, got.shape(), want.shape());
  }
  if (is_floating(got.dtype()) != is_floating(want.dtype())) {
    return fmt::format("{}: got {}, want {}", name, rill::name(got.dtype()), rill::name(want.dtype()));
  }
  const std::vector<double> g = got.to_vector<double>(), w = want.to_vector<double>();
  std::size_t worst = 0, wrong = 0;
  double most = 0;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double e = excess(g[i], w[i], bound);
    wrong += e > 0;
    if (e > most) {
      most = e;
      worst = i;
    }
  }
  if (wrong == 0) return std::nullopt;
  const std::string others = wrong > 1 ? fmt::format(" ({} of {} numbers are wrong)", wrong, g.size()) : "";
  return fmt::format("{} {}: got {:.17g}, want {:.17g}, tolerance {:.3g}{}", name,
                     index_text(static_cast<std::int64_t>(worst), want.shape()), g[worst], w[worst],
                     bound(w[worst]), others);
}

std::vector<std::string> compare(const ReferenceSet& set, const Case& c, const Results& results,
                                 DType dtype) {
  std::vector<std::string> wrong;
  const bool losses_only = dtype == float32 && c.kind == "train";
  for (const char* role : {"out", "grad", "final", "summary"}) {
    for (const std::string& name : c.names(role)) {
      if (losses_only && !(role == std::string_view("out") && name == "loss")) continue;
      const std::string full = fmt::format("{}.{}", role, name);
      const auto got = results.find(full);
      if (got == results.end()) {
        wrong.push_back(full + ": nothing was computed for it");
        continue;
      }
      const Tensor& want = set.tensor(c, role, name);
      if (auto text = difference(full, got->second, want, bound_of(c, want, dtype))) wrong.push_back(*text);
    }
  }
  return wrong;
}

}  // namespace rill::parity
