/// Models of the reference sets that are no modules of rill.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <parity/call.h>
#include <rill/nn/layers/linear.h>
#include <rill/nn/recurrent/recurrent.h>

namespace rill::parity {

/// The unit that an argument names, such as "RAU"; GRU when it is absent.
inline nn::Cell cell_of(Call& c, std::string_view argument) {
  if (!c.has(argument)) return nn::Cell::gru;
  const std::string unit = c.text(argument);
  if (const std::optional<nn::Cell> cell = nn::cell_named(unit)) return *cell;
  throw Unsupported(fmt::format("rill has no recurrent unit '{}'", unit));
}

/// Recurrent layers, then `fc` on the state of the last layer at each sequence's last step: x → [B, outputs].
class LastStep final : public nn::Module {
 public:
  /// `name` is that of the recurrent layers' parameters.
  LastStep(std::string name, const nn::RecurrentOptions& options, std::int64_t outputs, Rng& rng)
      : name_(std::move(name)),
        layers_(options, rng),
        fc_({.in_features = options.layers.hidden_size, .out_features = outputs}, rng) {}

  Tensor operator()(const Tensor& x, const Tensor& lengths = Tensor()) const {
    return fc_(layers_(x, {.lengths = lengths}).last.h.select(0, -1));
  }

  void members(nn::Members& m) override { m(name_, layers_)("fc", fc_); }

 private:
  std::string name_;
  nn::Recurrent layers_;
  nn::Linear fc_;
};

}  // namespace rill::parity
