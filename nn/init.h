/// Initial values of parameters, with PyTorch's names and formulas.
///
/// Each function fills `w` in place, of any layout (views and parts are written through their strides), in
/// row-major order of `w`, float32 or float64, without recording, and returns it. The same seed gives the
/// same numbers on every machine. Fans are those of a weight [out, in, …]: fan_in = in · receptive field,
/// fan_out = out · receptive field. Each throws for a tensor that is not floating or was computed by an op.
#pragma once

#include <cstdint>

#include <rill/core/random.h>
#include <rill/core/tensor.h>

#pragma GCC visibility push(default)

namespace rill::nn::init {

Tensor zeros_(Tensor w);
Tensor ones_(Tensor w);
Tensor constant_(Tensor w, double value);
Tensor uniform_(Tensor w, double lo, double hi, Rng& rng);  ///< in [lo, hi)
Tensor normal_(Tensor w, double mean, double deviation, Rng& rng);

/// Uniform in ±gain · √(6 / (fan_in + fan_out)) (Glorot and Bengio 2010). w has at least 2 dimensions.
Tensor xavier_uniform_(Tensor w, Rng& rng, double gain = 1);
/// Normal with deviation gain · √(2 / (fan_in + fan_out)).
Tensor xavier_normal_(Tensor w, Rng& rng, double gain = 1);

enum class Nonlinearity : std::uint8_t { linear, sigmoid, tanh, relu, leaky_relu };
enum class Fan : std::uint8_t { in, out };
struct KaimingOptions {
  double negative_slope = 0;  ///< of leaky_relu
  Fan fan = Fan::in;          ///< keeps the variance of the forward (in) or the backward pass (out)
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;
};
/// The factor by which a non-linearity shrinks the deviation: 1, 1, 5/3, √2, √(2 / (1 + slope²)).
double gain(Nonlinearity nonlinearity, double negative_slope = 0.01);
/// Uniform in ±gain · √(3 / fan) (He et al. 2015). w has at least 2 dimensions.
Tensor kaiming_uniform_(Tensor w, Rng& rng, KaimingOptions options = {});
/// Normal with deviation gain / √fan.
Tensor kaiming_normal_(Tensor w, Rng& rng, KaimingOptions options = {});

/// A random matrix with orthonormal rows or columns (whichever are fewer), times gain (Saxe et al. 2014): the
/// Q of a normal matrix with the signs that make R's diagonal positive, so that it is uniform over all such
/// matrices. w [rows, …] counts as [rows, rest]; at least 2 dimensions.
Tensor orthogonal_(Tensor w, Rng& rng, double gain = 1);

}  // namespace rill::nn::init

#pragma GCC visibility pop
