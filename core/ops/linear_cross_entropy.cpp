#include <rill/core/autograd.h>
#include <rill/core/gemm/gemm.h>
#include <rill/core/kernels/loss.h>
#include <rill/core/kernels/reduce.h>
#include <rill/core/ops.h>
#include <rill/core/ops/class_targets.h>
#include <rill/core/ops/layout.h>
#include <rill/core/ops/matmul_into.h>
#include <rill/core/ops/stored_weight.h>

#include <cmath>
#include <utility>
#include <vector>

// The scores of all rows are never materialized: the scores of a block of rows are computed, overwritten with
// their gradient and multiplied into dx, dW and db. The loss is a scalar, so the gradient that arrives later
// is just a factor. That saves one product over recomputing the scores in the backward pass, at the cost of
// the memory of one dW.

namespace rill {

using detail::ClassTargets;
using detail::raw;

namespace {

/// t as an operand of products, copied if necessary; `owner` keeps the elements alive.
template <class T>
MatrixView<const T> as_matrix(const Tensor& t, Tensor& owner) {
  owner = t.detach();
  if (!matrix_view<const T>(owner)) owner = owner.contiguous();
  return *matrix_view<const T>(owner);
}

/// Results of the forward pass besides the loss; undefined if not required.
struct KeptGradients {
  Tensor x;       // [N, in]
  Tensor weight;  // in the layout of the weight: [V, in] or [in, V]
  Tensor bias;    // [V]
  bool weight_transposed = false;
};

template <class T>
class BlockwiseLoss {
 public:
  BlockwiseLoss(const Tensor& x, const StoredWeight& weight, const Tensor& bias, const ClassTargets& targets,
                const CrossEntropyOptions& options)
      : n_in_(x.size(1)),
        classes_(weight.out_size()),
        x_(as_matrix<T>(x, x_owner_)),
        weight_(as_matrix<T>(weight.out_in(), weight_owner_)),
        bias_owner_(bias.defined() ? bias.detach().contiguous() : Tensor()),
        targets_(targets),
        own_(static_cast<T>(1 - options.label_smoothing)),
        every_(static_cast<T>(options.label_smoothing / static_cast<double>(classes_))),
        factor_(static_cast<T>(targets.row_factor(options.reduction))) {
    if (x_.transposed) x_ = as_matrix<T>(x.detach().contiguous(), x_owner_);
    const auto wants = [](const Tensor& t) { return grad_enabled() && t.defined() && t.requires_grad(); };
    if (wants(x)) kept_.x = empty(x.shape(), x.dtype());
    kept_.weight_transposed = weight_.transposed;
    if (wants(weight.array)) {
      kept_.weight = empty(weight_.transposed ? Shape{n_in_, classes_} : Shape{classes_, n_in_}, x.dtype());
    }
    if (wants(bias)) kept_.bias = empty(bias.shape(), bias.dtype());
    for (std::int64_t i = 0; i < targets.size(); ++i) {
      if (targets.counts(i)) rows_.push_back(i);
    }
  }

  /// The losses of the rows that are not ignored.
  Tensor run() {
    const auto n = static_cast<std::int64_t>(rows_.size());
    const Tensor losses = empty({n}, dtype_of<T>);
    const std::int64_t block = block_rows(n);
    scores_ = empty({block, classes_}, dtype_of<T>);
    if (!all_rows_count()) {
      packed_x_ = empty({block, n_in_}, dtype_of<T>);
      if (kept_.x.defined()) kept_.x.zero_();
    }
    if (n == 0) {
      if (kept_.weight.defined()) kept_.weight.zero_();
      if (kept_.bias.defined()) kept_.bias.zero_();
    }
    for (std::int64_t begin = 0; begin < n; begin += block) {
      block_loss(begin, std::min(block, n - begin), raw<T>(losses) + begin);
    }
    return losses;
  }

  KeptGradients take_kept() noexcept { return std::move(kept_); }

 private:
  /// Equal blocks of at most about 24 MiB of scores, but with enough rows for efficient products.
  std::int64_t block_rows(std::int64_t n) const {
    constexpr std::int64_t bytes = std::int64_t{24} << 20;
    constexpr std::int64_t fewest = 256;
    const std::int64_t row_bytes = std::max<std::int64_t>(1, classes_) * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t most = std::max(fewest, bytes / row_bytes);
    const std::int64_t blocks = std::max<std::int64_t>(1, (n + most - 1) / most);
    return (n + blocks - 1) / blocks;
  }

  bool all_rows_count() const { return static_cast<std::int64_t>(rows_.size()) == targets_.size(); }
  std::int64_t row_at(std::int64_t k) const { return rows_[static_cast<std::size_t>(k)]; }
  bool wants_gradient() const { return kept_.x.defined() || kept_.weight.defined() || kept_.bias.defined(); }

  void block_loss(std::int64_t begin, std::int64_t rows, T* losses) {
    MatrixView<const T> x = x_.slice_rows(begin, begin + rows);
    if (!all_rows_count()) {
      for (std::int64_t k = 0; k < rows; ++k) {
        std::copy_n(x_.at(row_at(begin + k), 0), n_in_, raw<T>(packed_x_) + k * n_in_);
      }
      x = {raw<const T>(packed_x_), rows, n_in_};
    }
    T* const scores = raw<T>(scores_);
    gemm<T>(x, weight_.t(), T(0), {scores, rows, classes_});
    const bool gradient = wants_gradient();
    detail::parallel_rows(rows, 4 * classes_, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t k = from; k < to; ++k) {
        losses[k] = row_loss(scores + k * classes_, row_at(begin + k), gradient);
      }
    });
    if (kept_.weight.defined()) add_weight_gradient(begin, rows, x);
    if (kept_.bias.defined()) add_bias_gradient(begin, rows);
    if (kept_.x.defined()) put_x_gradient(begin, rows);
  }

  /// The loss of row i, whose scores are overwritten with their gradient if that is required.
  T row_loss(T* scores, std::int64_t i, bool gradient) const {
    if (bias_owner_.defined()) kernels::add_bias(raw<const T>(bias_owner_), scores, classes_);
    const std::int64_t target = targets_[i];
    const T a = own_ * targets_.weight<T>(i);
    const T smoothing = every_ * static_cast<T>(targets_.all_weights());
    const T* const weights = targets_.weights<T>();
    const T greatest = kernels::max(scores, classes_);
    const T own_gap = a * (greatest - scores[target]);
    const T every_gap =
        every_ == 0 ? T(0) : every_ * kernels::weighted_gap(scores, greatest, weights, classes_);
    const T total = kernels::exp_in_place(greatest, scores, classes_);
    if (gradient) {
      kernels::scale_and_subtract(factor_ * (a + smoothing) / total, factor_ * every_, weights, scores,
                                  classes_);
      scores[target] -= factor_ * a;
    }
    return own_gap + every_gap + (a + smoothing) * std::log(total);
  }

  void add_weight_gradient(std::int64_t begin, std::int64_t rows, MatrixView<const T> x) {
    const MatrixView<const T> g{raw<const T>(scores_), rows, classes_};
    const MatrixView<T> to{raw<T>(kept_.weight), kept_.weight.size(0), kept_.weight.size(1)};
    gemm<T>(g.t(), x, begin == 0 ? T(0) : T(1), weight_.transposed ? to.t() : to);
  }

  void add_bias_gradient(std::int64_t begin, std::int64_t rows) {
    const std::int64_t grain = std::max<std::int64_t>(64, detail::grain_elements / rows);
    parallel_for(classes_, grain, [&](std::int64_t from, std::int64_t to) {
      kernels::sum_rows(rows, to - from, raw<const T>(scores_) + from, classes_, begin == 0 ? T(0) : T(1),
                        raw<T>(kept_.bias) + from);
    });
  }

  void put_x_gradient(std::int64_t begin, std::int64_t rows) {
    const bool direct = all_rows_count();
    // The packed rows are no longer needed; their memory is reused for the gradient.
    T* const to = direct ? raw<T>(kept_.x) + begin * n_in_ : raw<T>(packed_x_);
    gemm<T>({raw<const T>(scores_), rows, classes_}, weight_, T(0), {to, rows, n_in_});
    if (direct) return;
    for (std::int64_t k = 0; k < rows; ++k) {
      std::copy_n(to + k * n_in_, n_in_, raw<T>(kept_.x) + row_at(begin + k) * n_in_);
    }
  }

  std::int64_t n_in_;
  std::int64_t classes_;
  Tensor x_owner_;
  Tensor weight_owner_;
  MatrixView<const T> x_;
  MatrixView<const T> weight_;
  Tensor bias_owner_;
  const ClassTargets& targets_;
  T own_;
  T every_;
  T factor_;  ///< factor of a row's gradient by the reduction
  std::vector<std::int64_t> rows_;
  Tensor scores_;
  Tensor packed_x_;
  KeptGradients kept_;
};

void check_shapes(const Tensor& x, const StoredWeight& weight, const Tensor& bias, const Tensor& target) {
  const Shape shape{weight.out_size(), weight.in_size()};
  check(x.dim() == 2 && x.size(1) == shape[1],
        "linear_cross_entropy: x [N, in] and weight [V, in] do not fit: {} and {}", x.shape(), shape);
  check(target.shape() == Shape{x.size(0)}, "linear_cross_entropy: x {} needs targets [{}], not {}",
        x.shape(), x.size(0), target.shape());
  check(x.dtype() == weight.array.dtype(), "linear_cross_entropy: x is {}, the weight {}; use .to({})",
        name(x.dtype()), name(weight.array.dtype()), name(x.dtype()));
  if (!bias.defined()) return;
  check(bias.shape() == Shape{shape[0]}, "linear_cross_entropy: the bias is {}; {} classes need [{}]",
        bias.shape(), shape[0], shape[0]);
  check(bias.dtype() == x.dtype(), "linear_cross_entropy: x is {}, the bias {}; use .to({})", name(x.dtype()),
        name(bias.dtype()), name(x.dtype()));
}

/// Adds factor · kept to the gradient, or `kept` itself if it is not needed again.
void give_scaled(GradRef d, Tensor& kept, double factor, bool reusable, bool transposed = false) {
  if (!d) return;
  Tensor gradient = reusable ? (factor == 1 ? kept : mul(kept, factor)) : std::exchange(kept, Tensor());
  if (factor != 1 && !reusable) gradient.mul_(factor);
  if (transposed) gradient = gradient.t();
  d.give(std::move(gradient));
}

}  // namespace

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& target,
                            const CrossEntropyOptions& options) {
  check(weight.dim() == 2, "linear_cross_entropy: the weight is {}; it must be [V, in]", weight.shape());
  return linear_cross_entropy(x, StoredWeight{weight, true}, bias, target, options);
}

Tensor linear_cross_entropy(const Tensor& x, const StoredWeight& weight, const Tensor& bias,
                            const Tensor& target, const CrossEntropyOptions& options) {
  check_shapes(x, weight, bias, target);
  const double smoothing = options.label_smoothing;
  check(smoothing >= 0 && smoothing <= 1, "linear_cross_entropy: label_smoothing is {}; it must be in 0..1",
        smoothing);
  // The gradients of individual rows are not known in advance.
  if (options.reduction == Reduction::none) return cross_entropy(linear(x, weight, bias), target, options);
  return visit_floating("linear_cross_entropy", x.dtype(), [&]<class T>(Type<T>) {
    const ClassTargets targets("linear_cross_entropy", target, weight.out_size(), x.dtype(), options.weight,
                               options.ignore_index);
    const FlushDenormals flush;  // the gradients of unlikely classes
    BlockwiseLoss<T> loss(x, weight, bias, targets, options);
    const Tensor losses = loss.run();
    return record(
        "linear_cross_entropy", detail::reduced_loss(losses, options.reduction, targets.total_weight()),
        {x, weight.array, bias},
        [kept = loss.take_kept(), out_first = weight.out_first](const Tensor& dy, Grads& d) mutable {
          const double factor = dy.item();
          const bool again = d.retains_graph();
          give_scaled(d[0], kept.x, factor, again);
          give_scaled(d[1], kept.weight, factor, again, kept.weight_transposed == out_first);
          give_scaled(d[2], kept.bias, factor, again);
        });
  });
}

}  // namespace rill
