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
  std::uint64_t seed = 1;   ///< of the random projection of the outputs
  /// Names of the inputs for reports and errors; missing ones default to "input 0" and so on.
  std::vector<std::string> names = {};
  /// Names an element of an input in the report; defaults to the input's name and the index.
  std::function<std::string(std::size_t input, const Dims& index)> element_name = {};
};

/// The result of gradcheck.
struct GradcheckReport {
  bool ok = false;        ///< no error above the tolerance
  double worst = 0;       ///< the largest error
  std::string message;    ///< the worst element: "weight [0, 2] (sliced): analytic 1, numeric 2, error 0.5"
  std::size_t input = 0;  ///< the input of the worst element
  Dims index;             ///< the index of the worst element in that input
  std::int64_t elements = 0;                              ///< number of gradient elements compared
  explicit operator bool() const noexcept { return ok; }  ///< ok
};

/// A function of tensors with one or more results. It is called many times and must be deterministic.
using GradcheckFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Compares the gradient of a random projection of f's floating results with central differences, for every
/// element of every float64 input that requires grad. Integer and boolean inputs are passed through. A wrong
/// gradient is reported with ok = false. Throws for a float32 input or result, if no input requires grad, and
/// if f is not deterministic.
GradcheckReport gradcheck(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options = {});

/// A leaf reached by a backward pass, with one of the ops that read it.
struct ReachedLeaf {
  Tensor leaf;     ///< requires grad
  std::string op;  ///< name of an op that reads the leaf
};

/// The leaves that a backward pass from the roots would reach, each once. A root without a graph reaches
/// none. Throws if the graph of a root was freed by an earlier backward pass.
std::vector<ReachedLeaf> reached_leaves(std::span<const Tensor> roots);

}  // namespace rill

#pragma GCC visibility pop
