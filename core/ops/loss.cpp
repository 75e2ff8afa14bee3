#include <rill/core/autograd.h>
#include <rill/core/kernels/loss.h>
#include <rill/core/kernels/math.h>
#include <rill/core/ops.h>
#include <rill/core/ops/class_targets.h>
#include <rill/core/ops/layout.h>
#include <rill/core/ops/pointwise.h>
#include <rill/core/strided.h>

#include <cmath>
#include <utility>

namespace rill {

using detail::ClassTargets;
using detail::DimSet;
using detail::raw;
using detail::Rows;
using kernels::LogSumExp;

// --- over classes

namespace {

/// The dimension of the classes: the only one, or the second. Throws unless the targets have the remaining
/// shape.
int class_dim(const char* op, const Tensor& x, const Tensor& target) {
  check(x.dim() > 0, "{}: the scores have no dimension of classes", op);
  const int dim = x.dim() == 1 ? 0 : 1;
  Shape expected = x.shape();
  expected.erase(dim);
  check(target.shape() == expected, "{}: scores of shape {} need targets of shape {}, not {}", op, x.shape(),
        expected, target.shape());
  return dim;
}

/// -Σ_c weight_c (target_c (1 - s) + s / C) log softmax(x)_c for class probabilities, composed of core ops.
Tensor soft_cross_entropy(const Tensor& x, const Tensor& target, const CrossEntropyOptions& options) {
  check(target.dtype() == x.dtype(), "cross_entropy: probabilities are {}, scores {}; use .to({})",
        name(target.dtype()), name(x.dtype()), name(x.dtype()));
  check(target.shape() == x.shape() && x.dim() > 0,
        "cross_entropy: probabilities {} must have the shape of the scores, {}", target.shape(), x.shape());
  check(!options.ignore_index || *options.ignore_index < 0,
        "cross_entropy: ignore_index {} needs targets that are classes, not probabilities",
        options.ignore_index.value_or(0));
  const int dim = x.dim() == 1 ? 0 : 1;
  const auto classes = static_cast<double>(x.size(dim));
  const double s = options.label_smoothing;
  const Tensor q = s == 0 ? target : target * (1 - s) + s / classes;
  Tensor terms = q * log_softmax(x, dim);
  if (options.weight.defined()) {
    detail::check_class_weights("cross_entropy", options.weight, x.size(dim), x.dtype());
    Shape shape = Shape::filled(x.dim(), 1);
    shape[dim] = x.size(dim);
    terms = terms * options.weight.detach().reshape(shape);
  }
  if (options.reduction == Reduction::none) return neg(sum(terms, {dim}));
  const double divisor = options.reduction == Reduction::sum ? 1 : static_cast<double>(x.numel()) / classes;
  return sum(terms) / -divisor;
}

/// The terms of a row's loss (see kernels/loss.h): a and b, and the sum of all its coefficients.
struct Coefficients {
  double own;        ///< a / weight of the row's class
  double every;      ///< b
  double smoothing;  ///< b · Σ weights

  Coefficients(const ClassTargets& targets, double label_smoothing, std::int64_t classes)
      : own(1 - label_smoothing),
        every(label_smoothing / static_cast<double>(classes)),
        smoothing(every * targets.all_weights()) {}
};

template <class T>
void cross_entropy_forward(const Rows& x, const ClassTargets& targets, const Coefficients& c, LogSumExp<T>* z,
                           T* loss) {
  const std::int64_t n = x.size();
  const T b = static_cast<T>(c.every);
  detail::parallel_rows(x.count(), n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      loss[i] = 0;
      if (!targets.counts(i)) continue;
      const T* const row = x.row<T>(i);
      z[i] = kernels::log_sum_exp(row, n);
      const T a = static_cast<T>(c.own) * targets.weight<T>(i);
      loss[i] = a * ((z[i].greatest - row[targets[i]]) + z[i].log_sum);
      if (b == T(0)) continue;
      loss[i] += b * kernels::weighted_gap(row, z[i].greatest, targets.weights<T>(), n);
      loss[i] += static_cast<T>(c.smoothing) * z[i].log_sum;
    }
  });
}

/// dy[i · step] · factor is the gradient of row i's loss.
template <class T>
void cross_entropy_rows_backward(const Rows& x, const ClassTargets& targets, const Coefficients& c,
                                 const LogSumExp<T>* z, const T* dy, std::int64_t step, T factor, T beta,
                                 T* dx) {
  const FlushDenormals flush;  // probabilities of unlikely classes
  const std::int64_t n = x.size();
  detail::parallel_rows(x.count(), n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      T* const to = dx + i * n;
      if (!targets.counts(i)) {
        if (beta == T(0)) std::fill_n(to, n, T(0));
        continue;
      }
      const T g = dy[i * step] * factor;
      const T a = static_cast<T>(c.own) * targets.weight<T>(i);
      const T scale = g * (a + static_cast<T>(c.smoothing));
      kernels::cross_entropy_backward(x.row<T>(i), z[i], scale, g * static_cast<T>(c.every),
                                      targets.weights<T>(), beta, to, n);
      to[targets[i]] -= g * a;
    }
  });
}

}  // namespace

Tensor cross_entropy(const Tensor& x, const Tensor& target, const CrossEntropyOptions& options) {
  const double smoothing = options.label_smoothing;
  check(smoothing >= 0 && smoothing <= 1, "cross_entropy: label_smoothing is {}; it must be in 0..1",
        smoothing);
  if (is_floating(target.dtype())) return soft_cross_entropy(x, target, options);
  const int dim = class_dim("cross_entropy", x, target);
  return visit_floating("cross_entropy", x.dtype(), [&]<class T>(Type<T>) {
    const std::int64_t classes = x.size(dim);
    const ClassTargets targets("cross_entropy", target, classes, x.dtype(), options.weight,
                               options.ignore_index);
    const Coefficients c(targets, smoothing, classes);
    const DimSet set("cross_entropy", dim, x.dim());
    const Rows rows(x, set);
    const Tensor sums = empty({rows.count(), 2}, x.dtype());
    const Tensor losses = empty(target.shape(), x.dtype());
    cross_entropy_forward(rows, targets, c, raw<LogSumExp<T>>(sums), raw<T>(losses));
    Tensor y = detail::reduced_loss(losses, options.reduction, targets.total_weight());
    const T factor = static_cast<T>(targets.row_factor(options.reduction));
    const std::int64_t step = options.reduction == Reduction::none ? 1 : 0;
    return record("cross_entropy", std::move(y), {x},
                  [=, x = Saved(x, "cross_entropy")](const Tensor& dy, Grads& d) {
                    const Tensor gradient = dy.contiguous();
                    detail::write_rows<T>(d[0], set, [&](T* dx, T beta) {
                      cross_entropy_rows_backward(Rows(x(), set), targets, c, raw<const LogSumExp<T>>(sums),
                                                  raw<const T>(gradient), step, factor, beta, dx);
                    });
                  });
  });
}

namespace {

/// Calls f(i, offset) for each row i that is not ignored, with the offset of its target in the scores.
template <class F>
void each_target(const Shape& shape, const Strides& strides, int dim, const ClassTargets& targets,
                 const F& f) {
  Shape rows = shape;
  Strides steps = strides;
  rows.erase(dim);
  steps.erase(dim);
  for_each_run<2>(rows, {steps, contiguous_strides(rows)}, [&](auto at, std::int64_t n, auto step) {
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t i = at[1] + k * step[1];
      if (targets.counts(i)) f(i, at[0] + k * step[0] + targets[i] * strides[dim]);
    }
  });
}

}  // namespace

Tensor nll_loss(const Tensor& x, const Tensor& target, const NllLossOptions& options) {
  const int dim = class_dim("nll_loss", x, target);
  return visit_floating("nll_loss", x.dtype(), [&]<class T>(Type<T>) {
    const ClassTargets targets("nll_loss", target, x.size(dim), x.dtype(), options.weight,
                               options.ignore_index);
    const Tensor losses = zeros(target.shape(), x.dtype());
    each_target(x.shape(), x.strides(), dim, targets, [&](std::int64_t i, std::int64_t offset) {
      raw<T>(losses)[i] = -targets.weight<T>(i) * raw<const T>(x)[offset];
    });
    Tensor y = detail::reduced_loss(losses, options.reduction, targets.total_weight());
    const T factor = static_cast<T>(targets.row_factor(options.reduction));
    const std::int64_t step = options.reduction == Reduction::none ? 1 : 0;
    return record("nll_loss", std::move(y), {x}, [=](const Tensor& dy, Grads& d) {
      const Tensor gradient = dy.contiguous();
      const Tensor to = d[0].zeroed();
      each_target(to.shape(), to.strides(), dim, targets, [&](std::int64_t i, std::int64_t offset) {
        raw<T>(to)[offset] -= targets.weight<T>(i) * raw<const T>(gradient)[i * step] * factor;
      });
    });
  });
}

// --- elementwise

namespace {

struct SquaredError {
  static constexpr const char* name = "mse_loss";
  static constexpr Keeps keeps = Keeps::input;
  RILL_INLINE auto forward(auto x, auto t) const { return (x - t) * (x - t); }
  RILL_INLINE auto backward_a(auto dy, auto x, auto t) const { return 2 * dy * (x - t); }
  RILL_INLINE auto backward_b(auto dy, auto x, auto t) const { return 2 * dy * (t - x); }
};

struct LogitsCrossEntropy {
  static constexpr const char* name = "binary_cross_entropy_with_logits";
  static constexpr Keeps keeps = Keeps::input;
  /// max(x, 0) - x t + log(1 + e^-|x|). With u = 1 + e rounded, log u · e / (u - 1) is log(1 + e) to full
  /// precision.
  template <class T>
  RILL_INLINE T forward(T x, T t) const {
    const T e = kernels::math::exp(-std::fabs(x));
    const T u = 1 + e;
    const T log1p = u == T(1) ? e : kernels::math::log(u) * (e / (u - 1));
    return (x > T(0) ? x : T(0)) - x * t + log1p;
  }
  RILL_INLINE auto backward_a(auto dy, auto x, auto t) const { return dy * (kernels::math::sigmoid(x) - t); }
  RILL_INLINE auto backward_b(auto dy, auto x, auto) const { return -dy * x; }
};

/// A pointwise op of x and target with its reduction in the same node.
template <class Op>
Tensor elementwise_loss(const Op& op, const Tensor& x, const Tensor& target, Reduction reduction) {
  check(x.shape() == target.shape(), "{}: x is {}, the target {}; use reshape, unsqueeze or expand on one",
        Op::name, x.shape(), target.shape());
  check(x.dtype() == target.dtype(), "{}: x is {}, the target {}; use .to({})", Op::name, name(x.dtype()),
        name(target.dtype()), name(x.dtype()));
  if (reduction == Reduction::none) return binary(op, x, target);
  const Tensor each = detail::binary_forward(op, x, target);
  const double divisor = reduction == Reduction::mean ? static_cast<double>(each.numel()) : 1;
  return record(
      op.name, detail::reduced_loss(each, reduction, divisor), {x, target},
      [op, divisor, x = Saved(x, op.name), target = Saved(target, op.name)](const Tensor& dy, Grads& d) {
        const Tensor row = full({}, dy.item() / divisor, dy.dtype());
        detail::binary_backward(op, row.expand(x.shape()), x(), target(), d);
      });
}

}  // namespace

Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  return elementwise_loss(SquaredError{}, x, target, reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, Reduction reduction) {
  return elementwise_loss(LogitsCrossEntropy{}, x, target, reduction);
}

}  // namespace rill
