/// Gradient checking by central differences, for custom ops, functions and modules.
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
  std::size_t input = 0;  ///< the input that contains it
  Dims index;             ///< its index in that input
  std::int64_t elements = 0;                              ///< gradients compared
  explicit operator bool() const noexcept { return ok; }  ///< ok
};

/// A function of tensors with one or more results; called many times, so it must be deterministic.
using GradcheckFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Compares the gradient of an uneven random projection of f's floating results with central differences, for
/// every element of every float64 input that requires a gradient. Inputs of integer dtype are passed through.
/// Throws for float32 inputs, if no input requires a gradient, and if f returns different results for the
/// same inputs. A wrong gradient is reported by ok = false.
GradcheckReport gradcheck(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options = {});

/// A leaf that a backward pass reaches, and one of the ops that read it.
struct ReachedLeaf {
  Tensor leaf;     ///< requires a gradient
  std::string op;  ///< the op's name
};

/// The leaves that a backward pass from the roots would reach, each once. Throws if the graph of a root was
/// freed by an earlier backward pass. A root without a graph reaches none.
std::vector<ReachedLeaf> reached_leaves(std::span<const Tensor> roots);

}  // namespace rill

#pragma GCC visibility pop
