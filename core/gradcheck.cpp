#include <rill/core/gradcheck.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_set>
#include <utility>

#include <rill/core/autograd.h>
#include <rill/core/autograd/node_layout.h>
#include <rill/core/format.h>
#include <rill/core/ops.h>
#include <rill/core/random.h>

namespace rill {
namespace {

/// An input layout: f is called with a view of a dense leaf.
struct InputLayout {
  const char* name;
  Tensor (*leaf)(const Tensor& x);     ///< a tensor whose view has the elements of x
  Tensor (*view)(const Tensor& leaf);  ///< of the leaf or of its gradient
};

Tensor whole(const Tensor& x) { return x; }

Tensor reversed_dims(const Tensor& x) {
  Dims order;
  for (int d = x.dim() - 1; d >= 0; --d) order.push_back(d);
  return x.permute(order);
}

Tensor odd_columns(const Tensor& x) { return x.slice(-1, 1, x.size(-1), 2); }

Tensor spread(const Tensor& x) {
  Shape wide = x.shape();
  wide[-1] = 2 * wide[-1] + 1;
  Tensor leaf = zeros(wide, x.dtype());
  odd_columns(leaf).copy_(x);
  return leaf;
}

constexpr InputLayout contiguous_layout{"contiguous", whole, whole};
constexpr InputLayout transposed_layout{"transposed", reversed_dims, reversed_dims};
constexpr InputLayout sliced_layout{"sliced", spread, odd_columns};

std::string label(const GradcheckOptions& options, std::size_t input) {
  return input < options.names.size() ? options.names[input] : fmt::format("input {}", input);
}

std::string element_label(const GradcheckOptions& options, std::size_t input, const Dims& index) {
  return options.element_name ? options.element_name(input, index)
                              : fmt::format("{} {}", label(options, input), index);
}

/// Checks f for one layout of its inputs.
class Check {
 public:
  Check(const GradcheckFunction& f, const std::vector<Tensor>& inputs, const InputLayout& layout,
        const GradcheckOptions& options)
      : f_(f), layout_(layout), options_(options) {
    for (const Tensor& x : inputs) {
      const bool plain = !x.defined() || x.dim() == 0 || !is_floating(x.dtype());
      Tensor leaf = !x.defined() ? x : plain ? x.detach().clone() : layout.leaf(x.detach()).clone();
      if (x.defined() && x.requires_grad()) leaf.set_requires_grad();
      leaves_.push_back(leaf);
      inputs_.push_back(plain ? leaf : layout.view(leaf));
    }
  }

  void run(GradcheckReport& report) {
    make_projection();
    const std::vector<Tensor> outputs = f_(inputs_);
    std::vector<Tensor> roots, gradients;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!is_floating(outputs[i].dtype()) || !outputs[i].requires_grad()) continue;
      roots.push_back(outputs[i]);
      gradients.push_back(weights_[i]);
    }
    check(!roots.empty(), "gradcheck: no result depends on an input that requires grad");
    backward(roots, gradients);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (leaves_[i].defined() && leaves_[i].requires_grad()) compare(i, report);
    }
  }

 private:
  /// Random weights of the output elements; in a plain sum, errors could cancel.
  void make_projection() {
    const NoGrad no_grad;
    Rng rng(options_.seed);
    const std::vector<Tensor> outputs = f_(inputs_);
    for (const Tensor& y : outputs) {
      weights_.push_back(is_floating(y.dtype()) ? rand(y.shape(), rng, y.dtype()) + 0.5 : Tensor());
      check(!is_floating(y.dtype()) || y.dtype() == float64, "gradcheck: a result is {}; compute in float64",
            name(y.dtype()));
    }
    const std::vector<Tensor> again = f_(inputs_);
    bool same = again.size() == outputs.size();
    for (std::size_t i = 0; same && i < outputs.size(); ++i) same = equal_bits(outputs[i], again[i]);
    check(same, "gradcheck: the function is not deterministic; fix its random state");
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

  /// Each write calls mutable_data() again to invalidate data derived from the input, such as packed weights.
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

  /// The gradient computed by backward, in row-major order of the input.
  std::vector<double> analytic(std::size_t i) const {
    const Tensor grad = leaves_[i].grad();
    if (!grad.defined()) return std::vector<double>(static_cast<std::size_t>(inputs_[i].numel()), 0.0);
    return (grad.dim() == 0 ? grad : layout_.view(grad)).to_vector();
  }

  void compare(std::size_t i, GradcheckReport& report) {
    const Tensor& input = inputs_[i];
    const std::vector<double> gradient = analytic(i);
    for (std::int64_t flat = 0; flat < input.numel(); ++flat) {
      Dims index = Dims::filled(input.dim(), 0);
      std::int64_t offset = 0, rest = flat;
      for (int d = input.dim() - 1; d >= 0; --d) {
        index[d] = rest % input.shape()[d];
        rest /= input.shape()[d];
        offset += index[d] * input.strides()[d];
      }
      const double a = gradient[static_cast<std::size_t>(flat)];
      const double n = numeric(input, offset);
      const double error = std::abs(a - n) / std::max({1.0, std::abs(a), std::abs(n)});
      ++report.elements;
      if (error <= report.worst) continue;  // false for NaN too
      report.worst = std::isnan(error) ? INFINITY : error;
      report.input = i;
      report.index = index;
      report.message = fmt::format("{} ({}): analytic {:.12g}, numeric {:.12g}, error {:.3g}",
                                   element_label(options_, i, index), layout_.name, a, n, error);
    }
  }

  const GradcheckFunction& f_;
  const InputLayout& layout_;
  const GradcheckOptions& options_;
  std::vector<Tensor> leaves_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> weights_;
};

}  // namespace

GradcheckReport gradcheck(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options) {
  bool any_requires_grad = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !is_floating(inputs[i].dtype())) continue;
    check(inputs[i].dtype() == float64, "gradcheck: {} is {}; central differences need float64",
          label(options, i), name(inputs[i].dtype()));
    any_requires_grad = any_requires_grad || inputs[i].requires_grad();
  }
  check(any_requires_grad, "gradcheck: no input requires grad; call set_requires_grad()");
  GradcheckReport report;
  report.worst = -1;
  for (const InputLayout& layout : {contiguous_layout, transposed_layout, sliced_layout}) {
    Check(f, inputs, layout, options).run(report);
    if (!options.layouts) break;
  }
  report.worst = std::max(report.worst, 0.0);
  report.ok = report.worst <= options.tolerance;
  return report;
}

std::vector<ReachedLeaf> reached_leaves(std::span<const Tensor> roots) {
  std::vector<ReachedLeaf> found;
  std::vector<Node*> waiting;
  std::unordered_set<const void*> seen;
  const auto visit_node = [&](Node* node) {
    if (node && seen.insert(node).second) waiting.push_back(node);
  };
  for (const Tensor& root : roots) visit_node(root.impl().node.get());
  while (!waiting.empty()) {
    Node& node = *waiting.back();
    waiting.pop_back();
    check(!node.released,
          "reached_leaves: the graph of '{}' was freed by an earlier backward; call this before it, or pass "
          "{{.retain_graph = true}} to it",
          node.name);
    for (const Edge& edge : std::span(node.edges(), node.inputs)) {
      visit_node(edge.node.get());
      if (edge.leaf && seen.insert(edge.leaf.get()).second) found.push_back({Tensor(edge.leaf), node.name});
    }
  }
  return found;
}

}  // namespace rill
