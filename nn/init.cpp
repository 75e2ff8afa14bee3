#include <rill/nn/init.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <rill/core/autograd.h>

namespace rill::nn::init {
namespace {

/// Lets `fill(T* to, n)` write the elements of w in row-major order.
template <class F>
Tensor fill(const char* op, Tensor w, F&& fill) {
  const NoGrad no_grad;
  visit_floating(op, w.dtype(), [&]<class T>(Type<T>) {
    if (w.is_contiguous() && w.is_leaf()) {
      fill(w.mutable_data<T>(), w.numel());
    } else {
      Tensor values = empty(w.shape(), w.dtype());
      fill(values.mutable_data<T>(), values.numel());
      w.copy_(values);
    }
  });
  return w;
}

struct Fans {
  double in, out;
};

Fans fans(const char* op, const Tensor& w) {
  check(w.dim() >= 2, "{}: a tensor of shape {} has no fans; it needs 2 dimensions or more", op, w.shape());
  const double out = static_cast<double>(w.size(0)), in = static_cast<double>(w.size(1));
  const double field = w.numel() == 0 ? 1 : static_cast<double>(w.numel()) / (out * in);
  return {in * field, out * field};
}

double fan(const char* op, const Tensor& w, Fan which) {
  const Fans both = fans(op, w);
  return which == Fan::in ? both.in : both.out;
}

using Row = std::vector<double>;

double dot(const Row& a, const Row& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

void subtract(Row& from, double factor, const Row& other) {
  for (std::size_t i = 0; i < from.size(); ++i) from[i] -= factor * other[i];
}

/// `count` orthonormal vectors of `length` >= count numbers. Gram and Schmidt's method, each projection done
/// twice, which is as exact as Householder's; a vector that nearly vanishes is drawn anew.
std::vector<Row> orthonormal_rows(std::size_t count, std::size_t length, Rng& rng) {
  std::vector<Row> rows;
  while (rows.size() < count) {
    Row row(length);
    rng.fill_normal(row.data(), static_cast<std::int64_t>(length), 0, 1);
    const double before = std::sqrt(dot(row, row));
    for (int pass = 0; pass < 2; ++pass) {
      for (const Row& other : rows) subtract(row, dot(row, other), other);
    }
    const double left = std::sqrt(dot(row, row));
    if (left < 1e-10 * before) continue;
    for (double& v : row) v /= left;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

Tensor constant_(Tensor w, double value) {
  const NoGrad no_grad;
  w.fill_(value);
  return w;
}
Tensor zeros_(Tensor w) { return constant_(std::move(w), 0); }
Tensor ones_(Tensor w) { return constant_(std::move(w), 1); }

Tensor uniform_(Tensor w, double lo, double hi, Rng& rng) {
  return fill("uniform_", std::move(w), [&](auto* to, std::int64_t n) { rng.fill_uniform(to, n, lo, hi); });
}

Tensor normal_(Tensor w, double mean, double deviation, Rng& rng) {
  return fill("normal_", std::move(w),
              [&](auto* to, std::int64_t n) { rng.fill_normal(to, n, mean, deviation); });
}

Tensor xavier_uniform_(Tensor w, Rng& rng, double gain) {
  const Fans f = fans("xavier_uniform_", w);
  const double bound = gain * std::sqrt(6 / std::max(f.in + f.out, 1.0));
  return uniform_(std::move(w), -bound, bound, rng);
}

Tensor xavier_normal_(Tensor w, Rng& rng, double gain) {
  const Fans f = fans("xavier_normal_", w);
  return normal_(std::move(w), 0, gain * std::sqrt(2 / std::max(f.in + f.out, 1.0)), rng);
}

double gain(Nonlinearity nonlinearity, double negative_slope) {
  switch (nonlinearity) {
    case Nonlinearity::tanh:
      return 5.0 / 3;
    case Nonlinearity::relu:
      return std::sqrt(2.0);
    case Nonlinearity::leaky_relu:
      return std::sqrt(2 / (1 + negative_slope * negative_slope));
    case Nonlinearity::linear:
    case Nonlinearity::sigmoid:
      break;
  }
  return 1;
}

Tensor kaiming_uniform_(Tensor w, Rng& rng, KaimingOptions options) {
  const double bound = gain(options.nonlinearity, options.negative_slope) *
                       std::sqrt(3 / std::max(fan("kaiming_uniform_", w, options.fan), 1.0));
  return uniform_(std::move(w), -bound, bound, rng);
}

Tensor kaiming_normal_(Tensor w, Rng& rng, KaimingOptions options) {
  const double deviation = gain(options.nonlinearity, options.negative_slope) /
                           std::sqrt(std::max(fan("kaiming_normal_", w, options.fan), 1.0));
  return normal_(std::move(w), 0, deviation, rng);
}

Tensor orthogonal_(Tensor w, Rng& rng, double gain) {
  check(w.dim() >= 2,
        "orthogonal_: a tensor of shape {} has no rows and columns; it needs 2 dimensions or more",
        w.shape());
  const auto rows = static_cast<std::size_t>(w.size(0));
  return fill("orthogonal_", std::move(w), [&]<class T>(T* to, std::int64_t n) {
    if (n == 0) return;
    const std::size_t columns = static_cast<std::size_t>(n) / rows;
    const bool wide = rows <= columns;
    const auto vectors = orthonormal_rows(std::min(rows, columns), std::max(rows, columns), rng);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        to[i * columns + j] = static_cast<T>(gain * (wide ? vectors[i][j] : vectors[j][i]));
      }
    }
  });
}

}  // namespace rill::nn::init
