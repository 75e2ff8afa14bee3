/// Scoring a model on sentence pairs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <translator/data/encoded_pairs.h>
#include <translator/data/pairs.h>
#include <translator/model/translator.h>

namespace translator {

/// The mean negative log-likelihood of the target tokens in nats, including end tokens and excluding padding;
/// rare words count as unknown.
struct TokenLoss {
  double loss = 0;
  std::int64_t tokens = 0;
};
TokenLoss token_loss(const Translator& model, const EncodedPairs& pairs);

/// The figures of `translator evaluate`.
struct Evaluation {
  double bleu = 0;        ///< corpus BLEU-4 of the translations against the raw references, 0 to 100
  double loss = 0;        ///< see TokenLoss
  double perplexity = 0;  ///< e^loss
  std::int64_t sentences = 0;
  std::int64_t tokens = 0;  ///< of the references, including end tokens
  double tokens_per_s = 0;  ///< emitted per second of translation, including end tokens
  std::vector<Tokens> translations;
};

/// Translates the sources and compares with the targets. Leaves the model in evaluation mode.
Evaluation evaluate(Translator& model, std::span<const Pair> pairs, std::int64_t beam);

}  // namespace translator
