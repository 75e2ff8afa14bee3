/// Results of a replayed case against those of the reference set.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <parity/reference_set.h>

namespace rill::parity {

/// Tensors by "role.name", as in the files: out.loss, grad.param.weight, …
using Results = std::map<std::string, Tensor, std::less<>>;

/// Tolerance of a value: the larger of floor + rtol · |want| and `absolute`.
struct Bound {
  double rtol = 0;
  double floor = 0;
  double absolute = 0;
  double operator()(double want) const noexcept;
};

/// The first thing that is wrong with `got`, in words; nothing if it agrees. The text names the tensor, and
/// for a wrong number its index, both numbers, the tolerance and how many others are wrong. The worst number
/// is the one shown.
std::optional<std::string> difference(const std::string& name, const Tensor& got, const Tensor& want,
                                      const Bound& bound);

/// Everything that the case says about its results, compared; one text a tensor that is wrong or missing. In
/// float32 a training run is held to its losses alone and schedules stay float64.
std::vector<std::string> compare(const ReferenceSet& set, const Case& c, const Results& results, DType dtype);

}  // namespace rill::parity
