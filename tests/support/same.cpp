#include <support/same.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include <rill/core/autograd.h>
#include <rill/core/ops.h>
#include <rill/core/parallel.h>

namespace test {
namespace {

using rill::GradcheckFunction;
using rill::Tensor;
using Values = std::vector<std::vector<double>>;

enum class Layout { contiguous, transposed, sliced, one_row, one_column };

struct Setting {
  rill::DType dtype = rill::float64;
  Layout layout = Layout::contiguous;
  std::optional<std::size_t> only =
      std::nullopt;  ///< the only input to require a gradient; by default all that do

  std::string text() const {
    static constexpr const char* layouts[] = {"contiguous", "transposed", "sliced",
                                              "expanded (first dimension)", "expanded (last dimension)"};
    std::string t = std::string(name(dtype)) + ", " + layouts[static_cast<int>(layout)] + " inputs";
    return only ? t + ", gradient of input " + std::to_string(*only) + " alone" : t;
  }
};

/// Results, gradients, and gradients accumulated over two passes.
struct Run {
  Values results, gradients, doubled;
};

/// The dimension along which the setting expands an input, if any.
std::optional<int> expanded_dim(const Tensor& input, const Setting& setting) {
  const bool row = setting.layout == Layout::one_row, column = setting.layout == Layout::one_column;
  if ((!row && !column) || input.dim() == 0 || input.numel() == 0) return std::nullopt;
  return row ? 0 : input.dim() - 1;
}

/// A leaf of which `viewed` makes an input with the layout of the setting.
Tensor make_leaf(const Tensor& input, const Setting& setting) {
  const rill::NoGrad no_grad;
  Tensor x = input.detach().to(setting.dtype);
  if (setting.layout == Layout::transposed && x.dim() >= 2) return x.transpose(0, -1).clone();
  if (setting.layout == Layout::sliced && x.dim() >= 1) {
    rill::Shape wide = x.shape();
    wide[x.dim() - 1] *= 2;
    Tensor leaf = rill::full(wide, 0.25, setting.dtype);
    leaf.slice(-1, 1, wide.back(), 2).copy_(x);
    return leaf;
  }
  if (const std::optional<int> d = expanded_dim(input, setting)) return x.narrow(*d, 0, 1).clone();
  return x.clone();
}

Tensor viewed(const Tensor& input, const Tensor& leaf, const Setting& setting) {
  if (expanded_dim(input, setting)) return leaf.expand(input.shape());
  if (setting.layout == Layout::transposed && leaf.dim() >= 2) return leaf.transpose(0, -1);
  if (setting.layout == Layout::sliced && leaf.dim() >= 1) return leaf.slice(-1, 1, leaf.size(-1), 2);
  return leaf;
}

/// A random cotangent of each result.
std::vector<Tensor> cotangents(const std::vector<Tensor>& results, std::uint64_t seed) {
  rill::Rng rng(seed);
  std::vector<Tensor> all;
  for (const Tensor& y : results) all.push_back(rill::randn(y.shape(), rng, rill::float64).to(y.dtype()));
  return all;
}

Values values(const std::vector<Tensor>& tensors) {
  Values all;
  for (const Tensor& t : tensors) all.push_back(t.to_vector());
  return all;
}

/// The gradients of leaves, zeros if undefined.
Values gradients_of(const std::vector<Tensor>& leaves) {
  Values all;
  for (const Tensor& leaf : leaves) {
    all.push_back(leaf.grad().defined() ? leaf.grad().to_vector()
                                        : std::vector<double>(static_cast<std::size_t>(leaf.numel())));
  }
  return all;
}

Run run(const GradcheckFunction& f, const std::vector<Tensor>& inputs, const Setting& setting,
        std::uint64_t seed) {
  std::vector<Tensor> leaves;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !is_floating(inputs[i].dtype())) {
      leaves.push_back(inputs[i]);
      continue;
    }
    leaves.push_back(make_leaf(inputs[i], setting));
    leaves.back().set_requires_grad(inputs[i].requires_grad() && setting.only.value_or(i) == i);
  }
  std::vector<Tensor> watched;
  std::copy_if(leaves.begin(), leaves.end(), std::back_inserter(watched),
               [](const Tensor& t) { return t.defined() && t.requires_grad(); });

  Run out;
  for (Values* gradients : {&out.gradients, &out.doubled}) {
    std::vector<Tensor> given;
    for (std::size_t i = 0; i < leaves.size(); ++i)
      given.push_back(leaves[i].defined() ? viewed(inputs[i], leaves[i], setting) : leaves[i]);
    const std::vector<Tensor> results = f(given);
    out.results = values(results);
    // Drawn for all results, so that both functions get the same ones whichever results have a history.
    const std::vector<Tensor> drawn = cotangents(results, seed);
    std::vector<Tensor> roots, dresults;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i].requires_grad()) continue;
      roots.push_back(results[i]);
      dresults.push_back(drawn[i]);
    }
    if (!roots.empty()) rill::backward(roots, dresults);
    *gradients = gradients_of(watched);
  }
  return out;
}

std::string compare(const char* what, const Values& a, const Values& b, double factor, double tolerance) {
  if (a.size() != b.size()) return fmt::format("{} {}s against {}", a.size(), what, b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (a[k].size() != b[k].size()) {
      return fmt::format("{} {} has {} elements against {}", what, k, a[k].size(), b[k].size());
    }
    for (std::size_t i = 0; i < a[k].size(); ++i) {
      const double x = a[k][i], y = factor * b[k][i];
      const double error = std::abs(x - y) / std::max({1.0, std::abs(x), std::abs(y)});
      if (!(error <= tolerance)) return fmt::format("{} {} at {}: {} against {}", what, k, i, x, y);
    }
  }
  return "";
}

std::string differ_in(const GradcheckFunction& fused, const GradcheckFunction& composed,
                      const std::vector<Tensor>& inputs, const Setting& setting, const SameOptions& options) {
  const double tolerance = setting.dtype == rill::float64 ? options.tolerance64 : options.tolerance32;
  // The gradient of an expanded input is a sum over its repetitions, whose terms may cancel.
  const bool expanded = setting.layout == Layout::one_row || setting.layout == Layout::one_column;
  const double gradient_tolerance = (expanded ? 10 : 1) * tolerance;
  const Run want = run(composed, inputs, setting, options.seed);
  std::optional<Run> first;
  for (int threads : {1, 4}) {
    const Threads setter(threads);
    const Run got = run(fused, inputs, setting, options.seed);
    std::string text = compare("result", got.results, want.results, 1, tolerance);
    if (text.empty()) text = compare("gradient", got.gradients, want.gradients, 1, gradient_tolerance);
    if (text.empty())
      text = compare("accumulated gradient", got.doubled, want.gradients, 2, gradient_tolerance);
    if (!text.empty()) return fmt::format("{}, {} threads: {}", setting.text(), threads, text);
    if (!first) first = got;
    if (got.results != first->results || got.gradients != first->gradients) {
      return fmt::format("{}: the bits of 1 and {} threads differ", setting.text(), threads);
    }
  }
  return "";
}

}  // namespace

std::string difference(const GradcheckFunction& fused, const GradcheckFunction& composed,
                       const std::vector<Tensor>& inputs, const SameOptions& options) {
  std::vector<Setting> settings;
  for (rill::DType dtype : {rill::float64, rill::float32}) {
    settings.push_back({.dtype = dtype});
    if (!options.strided) continue;
    for (Layout layout : {Layout::transposed, Layout::sliced, Layout::one_row, Layout::one_column})
      settings.push_back({.dtype = dtype, .layout = layout});
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined() && inputs[i].requires_grad()) settings.push_back({.only = i});
  }
  for (const Setting& setting : settings) {
    const std::string text = differ_in(fused, composed, inputs, setting, options);
    if (!text.empty()) return text;
  }
  return "";
}

void same(const GradcheckFunction& fused, const GradcheckFunction& composed,
          const std::vector<Tensor>& inputs, const SameOptions& options) {
  const std::string text = difference(fused, composed, inputs, options);
  CHECK_MESSAGE(text.empty(), text);
}

}  // namespace test
