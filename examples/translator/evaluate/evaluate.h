/// How good a model is on given pairs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <translator/data/encoded_pairs.h>
#include <translator/data/pairs.h>
#include <translator/model/model.h>

namespace translator {

/// The mean negative log-likelihood of the real target tokens, the end counted and padding not, in nats; rare
/// words count as unknown.
struct TokenLoss {
  double loss = 0;
  std::int64_t tokens = 0;
};
TokenLoss token_loss(const Model& model, const EncodedPairs& pairs);

/// What `translator evaluate` reports.
struct Evaluation {
  double bleu = 0;        ///< corpus BLEU-4 of the translations against the raw references, 0 to 100
  double loss = 0;        ///< see TokenLoss
  double perplexity = 0;  ///< e^loss
  std::int64_t sentences = 0;
  std::int64_t tokens = 0;  ///< of the references, ends counted
  double tokens_per_s = 0;  ///< written while translating, ends counted
  std::vector<Tokens> translations;
};

/// Translates the sources and compares with the targets. Leaves the model in evaluation mode.
Evaluation evaluate(Model& model, std::span<const Pair> pairs, std::int64_t beam);

}  // namespace translator
