/// Gradient checking by central differences, for ops, functions and modules of one's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <rill/core/tensor.h>

#pragma GCC visibility push(default)

namespace rill {

/// Options of gradcheck.
struct GradcheckOptions {
  double eps = 3e-6;        ///< step, times max(1, |x|)
  double tolerance = 1e-7;  ///< largest allowed |analytic - numeric| / max(1, |analytic|, |numeric|)
  bool layouts = true;      ///< repeat with each input as a transposed and as a sliced view of a leaf
  std::uint64_t seed = 1;   ///< of the uneven projection of the outputs
  /// Names of the inputs for reports and errors; "input 0" and so on for those beyond.
  std::vector<std::string> names = {};
  /// Names an element of an input in the report; without it, by the input's name and the index.
  std::function<std::string(std::size_t input, const Dims& index)> element_name = {};
};

/// The result of gradcheck.
struct GradcheckReport {
  bool ok = false;        ///< no error above the tolerance
  double worst = 0;       ///< the largest error met
  std::string message;    ///< the worst element: "weight [0, 2] (sliced): analytic 1, numeric 2, error 0.5"
  std::size_t input = 0;  ///< which input that is an element of
  Dims index;             ///< and where in it
  std::int64_t elements = 0;                              ///< gradients compared
  explicit operator bool() const noexcept { return ok; }  ///< ok
};

/// A function of tensors with one or more results; called many times, must be deterministic.
using GradcheckFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Compares the gradient of an uneven random projection of f's floating results with central differences, for
/// every element of every float64 input that requires a gradient. Inputs of integer dtype are passed through.
/// Throws for float32 inputs, for no input with a gradient and for an f that gives different results for the
/// same inputs; a wrong gradient is a report with ok = false.
GradcheckReport gradcheck(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options = {});

/// A leaf that a backward pass gives a gradient, and one of the ops that read it.
struct ReachedLeaf {
  Tensor leaf;     ///< wants a gradient
  std::string op;  ///< the op's name
};

/// The leaves that a backward pass from the roots would reach, each once. Throws when the graph of a root was
/// freed by an earlier backward pass; a root without a graph reaches nothing.
std::vector<ReachedLeaf> reached_leaves(std::span<const Tensor> roots);

}  // namespace rill

#pragma GCC visibility pop
