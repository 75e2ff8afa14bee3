/// A recurrent layer and a linear one on each sequence's true last state.
#pragma once

#include <cstdint>
#include <variant>

#include <rill/nn/nn.h>

namespace classifier {

struct ModelOptions {
  rill::nn::Cell cell = rill::nn::Cell::gru;
  std::int64_t input_size = 28;
  std::int64_t hidden_size = 128;
  std::int64_t num_layers = 1;
  std::int64_t output_size = 10;
};

/// x [B, T, input_size] → [B, output_size]. Parameters `gru.…` or `rau.…`, `fc.weight`, `fc.bias`.
class Model final : public rill::nn::Module {
 public:
  Model(ModelOptions options, rill::Rng& rng);

  /// lengths [B] int64: the valid steps of each sequence; absent: all.
  rill::Tensor operator()(const rill::Tensor& x, const rill::Tensor& lengths = rill::Tensor()) const;

  const ModelOptions& options() const noexcept { return options_; }
  void members(rill::nn::Members& m) const override;

 private:
  ModelOptions options_;
  std::variant<rill::nn::GRU, rill::nn::RAU> layers_;
  rill::nn::Linear fc_;
};

}  // namespace classifier
