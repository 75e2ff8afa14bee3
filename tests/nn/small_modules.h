/// Modules shared by the tests of modules, state dicts and gradient checks.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <rill/core/core.h>
#include <rill/nn/layers/dropout.h>
#include <rill/nn/layers/embedding.h>
#include <rill/nn/layers/linear.h>
#include <rill/nn/recurrent/gru.h>

namespace test {

struct TaggerOptions {
  std::int64_t words = 10, embed = 4, hidden = 5, tags = 3;
};

/// A user-defined module, as in the documentation.
class Tagger final : public rill::nn::Module {
 public:
  Tagger(TaggerOptions o, rill::Rng& rng)
      : options_(o),
        embedding_({.num_embeddings = o.words, .embedding_dim = o.embed}, rng),
        gru_({.input_size = o.embed, .hidden_size = o.hidden, .num_layers = 2, .bidirectional = true}, rng),
        dropout_({.p = 0.5}, rng),
        score_({.in_features = 2 * o.hidden, .out_features = o.tags}, rng) {}

  rill::Tensor operator()(const rill::Tensor& ids, const rill::Tensor& lengths) const {
    const auto [states, last] = gru_(embedding_(ids), {.lengths = lengths});
    return score_(dropout_(states));
  }
  const TaggerOptions& options() const { return options_; }
  void members(rill::nn::Members& m) override {
    m("embedding", embedding_)("gru", gru_)("dropout", dropout_)("score", score_);
  }

 private:
  TaggerOptions options_;
  rill::nn::Embedding embedding_;
  rill::nn::GRU gru_;
  rill::nn::Dropout dropout_;
  rill::nn::Linear score_;
};

struct TiedOptions {
  bool tie = true;
};

/// Output weights shared with the embedding, a buffer, children in a vector.
class Tied final : public rill::nn::Module {
 public:
  Tied(TiedOptions o, rill::Rng& rng)
      : options_(o), embedding_({.num_embeddings = 6, .embedding_dim = 3}, rng) {
    for (int i = 0; i < 2; ++i)
      layers_.emplace_back(rill::nn::LinearOptions{.in_features = 3, .out_features = 3}, rng);
    layers_.emplace_back(rill::nn::LinearOptions{.in_features = 3, .out_features = 6, .bias = false}, rng);
    if (o.tie) layers_[2].tie_weight(embedding_.weight());
  }
  rill::Tensor operator()(const rill::Tensor& ids) const {
    return layers_[2](layers_[1](layers_[0](embedding_(ids))));
  }
  const TiedOptions& options() const { return options_; }
  const rill::Tensor& steps() const { return steps_; }
  void members(rill::nn::Members& m) override {
    m("embedding", embedding_)("layers", layers_).buffer("steps", steps_);
  }

 private:
  TiedOptions options_;
  rill::nn::Embedding embedding_;
  std::vector<rill::nn::Linear> layers_;
  rill::Tensor steps_ = rill::zeros({1}, rill::int64);
};

inline const rill::Tensor ids = rill::tensor<std::int64_t>({1, 2, 3, 4, 5, 0}, {3, 2});
inline const rill::Tensor lengths = rill::tensor<std::int64_t>({3, 2});

inline Tagger tagger(std::uint64_t seed) {
  rill::Rng rng(seed);
  return Tagger({}, rng);
}

inline Tied tied(std::uint64_t seed, bool tie = true) {
  rill::Rng rng(seed);
  return Tied({.tie = tie}, rng);
}

template <class T>
std::vector<std::string> names_of(const std::vector<std::pair<std::string, T>>& named) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : named) names.push_back(name);
  return names;
}

}  // namespace test
