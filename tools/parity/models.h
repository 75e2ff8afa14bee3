/// Models of the reference sets that are no modules of rill.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <parity/call.h>
#include <rill/nn/layers/linear.h>
#include <rill/nn/recurrent/sequence.h>

namespace rill::parity {

/// Whether an argument that names the unit, GRU or RAU, asks for RAU; GRU when it is absent.
inline bool is_rau(Call& c, std::string_view argument) {
  if (!c.has(argument)) return false;
  const std::string unit = c.text(argument);
  if (unit != "GRU" && unit != "RAU") throw Unsupported(fmt::format("rill has no recurrent unit '{}'", unit));
  return unit == "RAU";
}

/// Recurrent layers, then `fc` on the state of the last layer at each sequence's last step: x → [B, outputs].
template <class Layers>
class LastStep final : public nn::Module {
 public:
  /// `name` is that of the recurrent layers' parameters.
  template <class Options>
  LastStep(std::string name, const Options& options, std::int64_t outputs, Rng& rng)
      : name_(std::move(name)),
        layers_(options, rng),
        fc_({.in_features = options.hidden_size, .out_features = outputs}, rng) {}

  Tensor operator()(const Tensor& x, const Tensor& lengths = Tensor()) const {
    return fc_(layers_(x, {.lengths = lengths}).h_n.select(0, -1));
  }

  void members(nn::Members& m) const override { m(name_, layers_)("fc", fc_); }

 private:
  std::string name_;
  Layers layers_;
  nn::Linear fc_;
};

}  // namespace rill::parity
