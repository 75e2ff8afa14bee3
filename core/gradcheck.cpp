#include <rill/core/gradcheck.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <rill/core/autograd.h>
#include <rill/core/format.h>
#include <rill/core/ops.h>
#include <rill/core/random.h>

namespace rill {
namespace {

/// One check of f at one layout of its inputs.
class Check {
 public:
  Check(const GradcheckFunction& f, std::vector<Tensor> inputs, const GradcheckOptions& options)
      : f_(f), inputs_(std::move(inputs)), options_(options) {}

  void run(const char* layout, GradcheckReport& report) {
    make_projection();
    for (Tensor& input : inputs_) input.zero_grad();
    const std::vector<Tensor> outputs = f_(inputs_);
    std::vector<Tensor> roots, gradients;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!is_floating(outputs[i].dtype()) || !outputs[i].requires_grad()) continue;
      roots.push_back(outputs[i]);
      gradients.push_back(weights_[i]);
    }
    check(!roots.empty(), "gradcheck: no result depends on an input that wants a gradient");
    backward(roots, gradients);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].requires_grad()) compare(i, layout, report);
    }
  }

 private:
  /// Uneven weights for every output element: a plain sum would hide errors that cancel.
  void make_projection() {
    const NoGrad no_grad;
    Rng rng(options_.seed);
    const std::vector<Tensor> outputs = f_(inputs_);
    for (const Tensor& y : outputs) {
      weights_.push_back(is_floating(y.dtype()) ? rand(y.shape(), rng, y.dtype()) + 0.5 : Tensor());
      check(!is_floating(y.dtype()) || y.dtype() == float64, "gradcheck: a result is {}; work in float64",
            name(y.dtype()));
    }
    const std::vector<Tensor> again = f_(inputs_);
    bool same = again.size() == outputs.size();
    for (std::size_t i = 0; same && i < outputs.size(); ++i) same = equal_bits(outputs[i], again[i]);
    check(same, "gradcheck: the function gives different results for the same inputs; fix its random state");
  }

  static bool equal_bits(const Tensor& a, const Tensor& b) {
    if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) return false;
    const Tensor x = a.contiguous(), y = b.contiguous();
    return visit(x.dtype(), [&]<class T>(Type<T>) {
      return std::memcmp(x.data<T>(), y.data<T>(), static_cast<std::size_t>(x.numel()) * sizeof(T)) == 0;
    });
  }

  double projected() const {
    const NoGrad no_grad;
    const std::vector<Tensor> outputs = f_(inputs_);
    double total = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!weights_[i].defined()) continue;
      const auto y = outputs[i].to_vector(), w = weights_[i].to_vector();
      for (std::size_t j = 0; j < y.size(); ++j) total += y[j] * w[j];
    }
    return total;
  }

  /// Every write asks for mutable_data() again, so that what is derived from an input (a packed weight) is
  /// derived anew.
  double numeric(Tensor input, std::int64_t offset) const {
    const double at = input.data<double>()[offset];
    const double step = options_.eps * std::max(1.0, std::abs(at));
    const double up = at + step, down = at - step;
    input.mutable_data<double>()[offset] = up;
    const double above = projected();
    input.mutable_data<double>()[offset] = down;
    const double below = projected();
    input.mutable_data<double>()[offset] = at;
    return (above - below) / (up - down);
  }

  void compare(std::size_t i, const char* layout, GradcheckReport& report) {
    const Tensor& input = inputs_[i];
    const Tensor grad = input.grad();
    const std::vector<double> analytic =
        grad.defined() ? grad.to_vector() : std::vector<double>(static_cast<std::size_t>(input.numel()), 0.0);
    for (std::int64_t flat = 0; flat < input.numel(); ++flat) {
      Dims index = Dims::filled(input.dim(), 0);
      std::int64_t offset = 0, rest = flat;
      for (int d = input.dim() - 1; d >= 0; --d) {
        index[d] = rest % input.shape()[d];
        rest /= input.shape()[d];
        offset += index[d] * input.strides()[d];
      }
      const double a = analytic[static_cast<std::size_t>(flat)];
      const double n = numeric(input, offset);
      const double error = std::abs(a - n) / std::max({1.0, std::abs(a), std::abs(n)});
      ++report.elements;
      if (error <= report.worst) continue;  // false for NaN too
      report.worst = std::isnan(error) ? INFINITY : error;
      report.message = fmt::format("input {} ({}) at {}: analytic {:.12g}, numeric {:.12g}, error {:.3g}", i,
                                   layout, index, a, n, error);
    }
  }

  const GradcheckFunction& f_;
  std::vector<Tensor> inputs_;
  const GradcheckOptions& options_;
  std::vector<Tensor> weights_;
};

/// A leaf with the values of x that lies in memory as `strides_of(wide)` says.
Tensor transposed_copy(const Tensor& x) {
  Dims order;
  for (int d = x.dim() - 1; d >= 0; --d) order.push_back(d);
  return x.detach().permute(order).clone().permute(order).detach();
}

Tensor sliced_copy(const Tensor& x) {
  Shape wide = x.shape();
  const int last = x.dim() - 1;
  wide[last] = 2 * wide[last] + 1;
  Tensor view = zeros(wide, x.dtype()).slice(last, 1, wide[last], 2).detach();
  return view.copy_(x.detach());
}

std::vector<Tensor> fresh(const std::vector<Tensor>& inputs, Tensor (*copy)(const Tensor&)) {
  std::vector<Tensor> out;
  for (const Tensor& x : inputs) {
    Tensor y = x.defined() && x.dim() > 0 && is_floating(x.dtype()) ? copy(x)
               : x.defined()                                        ? x.detach().clone()
                                                                    : x;
    if (x.defined() && x.requires_grad()) y.set_requires_grad();
    out.push_back(y);
  }
  return out;
}

}  // namespace

GradcheckReport gradcheck(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options) {
  bool any = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !is_floating(inputs[i].dtype())) continue;
    check(inputs[i].dtype() == float64, "gradcheck: input {} is {}; central differences need float64", i,
          name(inputs[i].dtype()));
    any = any || inputs[i].requires_grad();
  }
  check(any, "gradcheck: no input wants a gradient; call set_requires_grad()");
  GradcheckReport report;
  report.worst = -1;
  Check(f, fresh(inputs, [](const Tensor& x) { return x.detach().clone(); }), options)
      .run("contiguous", report);
  if (options.layouts) {
    Check(f, fresh(inputs, transposed_copy), options).run("transposed", report);
    Check(f, fresh(inputs, sliced_copy), options).run("sliced", report);
  }
  report.worst = std::max(report.worst, 0.0);
  report.ok = report.worst <= options.tolerance;
  return report;
}

}  // namespace rill
