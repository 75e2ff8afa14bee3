/// A small Seq2Seq, sources for it, and greedy decoding with plain steps, shared by its tests.
#pragma once

#include <cstdint>
#include <vector>

#include <rill/core/core.h>
#include <rill/nn/seq2seq/seq2seq.h>
#include <rill/optim/optim.h>

namespace test {

using namespace rill;
using nn::Cell;

inline nn::Seq2SeqOptions small_options(Cell cell = Cell::gru) {
  return {.source_vocabulary = 12,
          .target_vocabulary = 10,
          .embedding_dim = 5,
          .hidden_size = 6,
          .bidirectional = true,
          .directions = nn::Directions::concat,
          .bridge = nn::Bridge::project,
          .cell = cell,
          .features_dropout = 0.1,
          .output_embedding = true};
}

inline Tensor random_tokens(const Shape& shape, std::uint64_t seed, std::uint64_t vocabulary) {
  Rng rng(seed);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < numel(shape); ++i)
    ids.push_back(static_cast<std::int64_t>(rng.below(vocabulary)));
  return tensor(ids, shape);
}

/// Greedily decoded tokens [steps, B], not stopping at the end token.
inline Tensor decode_greedily(const nn::Seq2Seq& model, const nn::Encoded& from, std::int64_t steps) {
  const NoGrad no_grad;
  Tensor token = full({from.state.batch()}, 1, int64);
  nn::RecurrentState state = from.state;
  std::vector<Tensor> all;
  for (std::int64_t t = 0; t < steps; ++t) {
    const nn::DecoderStep step = model.decoder().step(token, state, from.memory);
    token = argmax(step.log_probs, 1);
    state = step.state;
    all.push_back(token.unsqueeze(0));
  }
  std::vector<std::int64_t> ids;
  for (const Tensor& t : all) {
    for (const std::int64_t id : t.to_vector<std::int64_t>()) ids.push_back(id);
  }
  return tensor(ids, {steps, from.state.batch()});
}

/// Sources of 2 to 7 tokens with their lengths.
struct Sources {
  Tensor ids = random_tokens({7, 5}, 11, 12);
  std::vector<std::int64_t> lengths{7, 2, 5, 3, 6};
  Tensor lengths_tensor() const { return tensor(lengths, {5}); }
  Tensor alone(std::int64_t b) const {
    return ids.narrow(1, b, 1).narrow(0, 0, lengths[static_cast<std::size_t>(b)]).clone();
  }
};

inline nn::Seq2Seq briefly_trained(nn::Seq2SeqOptions options) {
  Rng rng(3);
  nn::Seq2Seq model(options, rng);
  optim::Adam adam(model.parameters(), {.lr = 0.02});
  const Sources sources;
  const Tensor target = random_tokens({4, 5}, 5, 10);
  for (int step = 0; step < 15; ++step) {
    adam.zero_grad();
    model.loss(sources.ids, sources.lengths_tensor(), target, target).backward();
    adam.step();
  }
  model.eval();
  return model;
}

}  // namespace test
