#include <rill/nn/init.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <rill/core/extend.h>
#include <rill/core/ops.h>

namespace rill::nn::init {
namespace {

/// Calls f(w) for each tensor to fill.
template <class F>
Tensor fill_each(const Target& target, F&& f) {
  const NoGrad no_grad;
  for (const Tensor& w : target.parts()) f(w);
  return target.given();
}

/// Fills w with `write(T* to, n)`, in row-major order.
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

/// Recursive Gram-Schmidt orthonormalization of the rows of a float64 matrix with at most as many rows as
/// columns. Halving the rows puts nearly all of the work into large matrix products.
class GramSchmidt {
 public:
  explicit GramSchmidt(const Tensor& rows) : rows_(rows) {
    for (std::int64_t i = 0; i < rows.size(0); ++i) lengths_.push_back(length(i));
  }

  /// Orthonormalizes all rows.
  void run() { run(0, rows_.size(0)); }

 private:
  Tensor rows(std::int64_t first, std::int64_t last) const { return rows_.narrow(0, first, last - first); }

  double length(std::int64_t i) const {
    const std::int64_t n = rows_.size(1);
    const double* row = rows_.data<double>() + i * n;
    return std::sqrt(rill::kernels::dot(row, row, n));
  }

  /// Subtracts from the rows `some` their projections onto `others`, which are orthonormal.
  static void project(const Tensor& some, const Tensor& others) {
    Tensor products = matmul(some, others.t());
    matmul_into({some, 1}, products.mul_(-1), others);
  }

  /// Orthonormalizes rows first … last - 1, which are already orthogonal to the rows before them.
  void run(std::int64_t first, std::int64_t last) {
    if (last - first <= 1) {
      if (first < last) normalise(first);
      return;
    }
    const std::int64_t middle = first + (last - first) / 2;
    run(first, middle);
    project(rows(middle, last), rows(first, middle));
    run(middle, last);
  }

  /// A row that became short lost as many digits to cancellation; projecting it again restores them.
  void normalise(std::int64_t i) {
    Tensor row = rows(i, i + 1);
    double before = lengths_[static_cast<std::size_t>(i)], left = length(i);
    while (left < 0.1 * before) {
      project(row, rows(0, i));
      before = std::exchange(left, length(i));
    }
    row.mul_(1 / left);
  }

  Tensor rows_;
  std::vector<double> lengths_;  // of the original rows
};

/// A matrix with orthonormal rows or columns, whichever are fewer.
Tensor orthonormal(std::int64_t rows, std::int64_t columns, Rng& rng) {
  Tensor q = empty({std::min(rows, columns), std::max(rows, columns)}, float64);
  rng.fill_normal(q.mutable_data<double>(), q.numel(), 0, 1);
  GramSchmidt(q).run();
  return rows <= columns ? q : q.t().contiguous();
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

Tensor orthogonal_(const Target& target, Rng& rng, double gain) {
  return fill_each(target, [&](const Tensor& w) {
    check(w.dim() >= 2,
          "orthogonal_: a tensor of shape {} has no rows and columns; it needs 2 dimensions or more",
          w.shape());
    fill("orthogonal_", w, [&]<class T>(T* to, std::int64_t n) {
      if (n == 0) return;
      const Tensor q = orthonormal(w.size(0), n / w.size(0), rng);
      std::transform(q.data<double>(), q.data<double>() + n, to,
                     [&](double v) { return static_cast<T>(gain * v); });
    });
  });
}

}  // namespace rill::nn::init
