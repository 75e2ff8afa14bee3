/// A recurrent layer, and a linear layer on the last valid state of each sequence.
#pragma once

#include <cstdint>

#include <rill/nn/nn.h>

namespace classifier {

struct SequenceClassifierOptions {
  rill::nn::Cell cell = rill::nn::Cell::gru;
  std::int64_t input_size = 28;
  std::int64_t hidden_size = 128;
  std::int64_t num_layers = 1;
  std::int64_t output_size = 10;
};

/// x [B, T, input_size] → [B, output_size]. Parameters `gru.…` (the unit's name), `fc.weight`, `fc.bias`.
class SequenceClassifier final : public rill::nn::Module {
 public:
  SequenceClassifier(SequenceClassifierOptions options, rill::Rng& rng);

  /// lengths [B] int64: the valid steps of each sequence; absent: all.
  rill::Tensor operator()(const rill::Tensor& x, const rill::Tensor& lengths = rill::Tensor()) const;

  const SequenceClassifierOptions& options() const noexcept { return options_; }
  void members(rill::nn::Members& m) override;

 private:
  SequenceClassifierOptions options_;
  rill::nn::Recurrent layers_;
  rill::nn::Linear fc_;
};

}  // namespace classifier
