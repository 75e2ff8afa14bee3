#include <rill/nn/init.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <rill/core/autograd.h>

namespace rill::nn::init {
namespace {

/// Calls f(w) for each tensor to be filled.
template <class F>
Tensor fill_each(const Target& target, F&& f) {
  const NoGrad no_grad;
  for (const Tensor& w : target.parts()) f(w);
  return target.given();
}

/// Lets `write(T* to, n)` write the elements of w in row-major order.
template <class F>
void fill(const char* op, Tensor w, F&& write) {
  visit_floating(op, w.dtype(), [&]<class T>(Type<T>) {
    if (w.is_contiguous() && w.is_leaf()) {
      write(w.mutable_data<T>(), w.numel());
    } else {
      Tensor values = empty(w.shape(), w.dtype());
      write(values.mutable_data<T>(), values.numel());
      w.copy_(values);
    }
  });
}

void fill_uniform(const char* op, const Tensor& w, double lo, double hi, Rng& rng) {
  fill(op, w, [&](auto* to, std::int64_t n) { rng.fill_uniform(to, n, lo, hi); });
}

void fill_normal(const char* op, const Tensor& w, double mean, double deviation, Rng& rng) {
  fill(op, w, [&](auto* to, std::int64_t n) { rng.fill_normal(to, n, mean, deviation); });
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

Tensor constant_(const Target& target, double value) {
  return fill_each(target, [&](Tensor w) { w.fill_(value); });
}
Tensor zeros_(const Target& w) { return constant_(w, 0); }
Tensor ones_(const Target& w) { return constant_(w, 1); }

Tensor uniform_(const Target& target, double lo, double hi, Rng& rng) {
  return fill_each(target, [&](const Tensor& w) { fill_uniform("uniform_", w, lo, hi, rng); });
}

Tensor normal_(const Target& target, double mean, double deviation, Rng& rng) {
  return fill_each(target, [&](const Tensor& w) { fill_normal("normal_", w, mean, deviation, rng); });
}

Tensor xavier_uniform_(const Target& target, Rng& rng, double gain) {
  constexpr const char* op = "xavier_uniform_";
  return fill_each(target, [&](const Tensor& w) {
    const Fans f = fans(op, w);
    const double bound = gain * std::sqrt(6 / std::max(f.in + f.out, 1.0));
    fill_uniform(op, w, -bound, bound, rng);
  });
}

Tensor xavier_normal_(const Target& target, Rng& rng, double gain) {
  constexpr const char* op = "xavier_normal_";
  return fill_each(target, [&](const Tensor& w) {
    const Fans f = fans(op, w);
    fill_normal(op, w, 0, gain * std::sqrt(2 / std::max(f.in + f.out, 1.0)), rng);
  });
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

Tensor kaiming_uniform_(const Target& target, Rng& rng, KaimingOptions options) {
  constexpr const char* op = "kaiming_uniform_";
  return fill_each(target, [&](const Tensor& w) {
    const double bound = gain(options.nonlinearity, options.negative_slope) *
                         std::sqrt(3 / std::max(fan(op, w, options.fan), 1.0));
    fill_uniform(op, w, -bound, bound, rng);
  });
}

Tensor kaiming_normal_(const Target& target, Rng& rng, KaimingOptions options) {
  constexpr const char* op = "kaiming_normal_";
  return fill_each(target, [&](const Tensor& w) {
    const double deviation = gain(options.nonlinearity, options.negative_slope) /
                             std::sqrt(std::max(fan(op, w, options.fan), 1.0));
    fill_normal(op, w, 0, deviation, rng);
  });
}

namespace {

template <class T>
void orthogonal_matrix(std::size_t rows, std::size_t columns, double gain, Rng& rng, T* to) {
  const bool wide = rows <= columns;
  const auto vectors = orthonormal_rows(std::min(rows, columns), std::max(rows, columns), rng);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      to[i * columns + j] = static_cast<T>(gain * (wide ? vectors[i][j] : vectors[j][i]));
    }
  }
}

}  // namespace

Tensor orthogonal_(const Target& target, Rng& rng, double gain) {
  return fill_each(target, [&](const Tensor& w) {
    check(w.dim() >= 2,
          "orthogonal_: a tensor of shape {} has no rows and columns; it needs 2 dimensions or more",
          w.shape());
    const auto rows = static_cast<std::size_t>(w.size(0));
    fill("orthogonal_", w, [&](auto* to, std::int64_t n) {
      if (n > 0) orthogonal_matrix(rows, static_cast<std::size_t>(n) / rows, gain, rng, to);
    });
  });
}

}  // namespace rill::nn::init
