/// Initial values of parameters, with PyTorch's names and formulas.
///
/// Each function fills `w` (float32 or float64, any layout) in place, in row-major order, without recording,
/// and returns it. For a leaf of a module (`Module::parameters`) it fills each parameter that the leaf
/// stores, in PyTorch's shape and with the fans of that shape. The same seed gives the same values on every
/// machine. Fans are those of a weight [out, in, …]: fan_in = in · receptive field, fan_out = out · receptive
/// field. All throw for a tensor that is not floating or is the result of an op.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <rill/core/random.h>
#include <rill/core/tensor.h>
#include <rill/nn/module.h>

#pragma GCC visibility push(default)

namespace rill::nn::init {

/// The argument of an init function: a tensor, a named parameter, or a leaf, which means every parameter that
/// it stores.
class Target {
 public:
  // --- of what is given to an init function
  Target(const Tensor& w) : given_(w), parts_{w} {}
  Target(const ParameterView& w) : given_(w), parts_{w.detach()} {}
  /// Each parameter that the leaf stores.
  Target(const Parameter& leaf) : given_(leaf) {
    for (const auto& [name, view] : leaf.views) parts_.push_back(view.detach());
  }

  const Tensor& given() const noexcept { return given_; }  ///< returned by init functions
  const std::vector<Tensor>& parts() const noexcept {
    return parts_;
  }  ///< filled one by one, each with its own fans

 private:
  Tensor given_;
  std::vector<Tensor> parts_;
};

// --- constants and plain distributions → w
Tensor zeros_(const Target& w);
Tensor ones_(const Target& w);
Tensor constant_(const Target& w, double value);
Tensor uniform_(const Target& w, double lo, double hi, Rng& rng);  ///< in [lo, hi)
Tensor normal_(const Target& w, double mean, double deviation, Rng& rng);

/// Uniform in ±gain · √(6 / (fan_in + fan_out)) (Glorot and Bengio 2010). w has at least 2 dimensions.
Tensor xavier_uniform_(const Target& w, Rng& rng, double gain = 1);
/// Normal with standard deviation gain · √(2 / (fan_in + fan_out)).
Tensor xavier_normal_(const Target& w, Rng& rng, double gain = 1);

/// The nonlinearity that follows a layer.
enum class Nonlinearity : std::uint8_t { linear, sigmoid, tanh, relu, leaky_relu };
/// The fan to use: inputs or outputs of a layer.
enum class Fan : std::uint8_t { in, out };
/// Options of Kaiming's methods, with PyTorch's names.
struct KaimingOptions {
  double negative_slope = 0;  ///< of leaky_relu
  Fan fan = Fan::in;          ///< keeps the variance of the forward (in) or the backward pass (out)
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;  ///< that follows the layer
};
/// The recommended gain of a nonlinearity: 1, 1, 5/3, √2, √(2 / (1 + slope²)).
double gain(Nonlinearity nonlinearity, double negative_slope = 0.01);
/// Uniform in ±gain · √(3 / fan) (He et al. 2015). w has at least 2 dimensions.
Tensor kaiming_uniform_(const Target& w, Rng& rng, KaimingOptions options = {});
/// Normal with standard deviation gain / √fan.
Tensor kaiming_normal_(const Target& w, Rng& rng, KaimingOptions options = {});

/// A random matrix with orthonormal rows or columns (whichever are fewer), times gain (Saxe et al. 2014): the
/// Q of a normal matrix with the signs that make R's diagonal positive, so that it is uniform over all such
/// matrices. Computed in float64; bitwise the same for any number of threads, and equal up to rounding on
/// every machine. w [rows, …] is treated as [rows, rest] and has at least 2 dimensions.
Tensor orthogonal_(const Target& w, Rng& rng, double gain = 1);

}  // namespace rill::nn::init

#pragma GCC visibility pop
