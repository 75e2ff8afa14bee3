#include <translator/evaluate/evaluation.h>

#include <chrono>
#include <cmath>

#include <rill/core/autograd.h>
#include <translator/evaluate/bleu.h>

namespace translator {

TokenLoss token_loss(const Translator& model, const EncodedPairs& pairs) {
  const rill::NoGrad no_grad;
  double sum = 0;
  TokenLoss out;
  for (const auto& indices : rill::nn::sorted_batches(pairs.lengths, {.batch_size = 64})) {
    const PairBatch batch = pair_batch(pairs, indices);
    const rill::Tensor loss =
        model.network().loss(batch.source, batch.source_lengths, batch.target_in, batch.target_out,
                             {.ignore_index = Vocabulary::pad, .reduction = rill::Reduction::sum});
    sum += loss.item();
    out.tokens += batch.tokens;
  }
  out.loss = out.tokens > 0 ? sum / static_cast<double>(out.tokens) : 0;
  return out;
}

Evaluation evaluate(Translator& model, std::span<const Pair> pairs, std::int64_t beam) {
  model.network().eval();
  const TokenLoss loss =
      token_loss(model, encode_pairs(pairs, model.languages().source, model.languages().target));
  std::vector<Tokens> sources;
  for (const Pair& pair : pairs) sources.push_back(pair.source);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Translation> translations = model.translate(sources, beam);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;

  Evaluation out;
  Bleu bleu;
  std::int64_t written = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    bleu.add(translations[i].tokens, pairs[i].target);
    written += static_cast<std::int64_t>(translations[i].tokens.size()) + 1;
    out.translations.push_back(translations[i].tokens);
  }
  out.bleu = bleu.score();
  out.loss = loss.loss;
  out.perplexity = std::exp(loss.loss);
  out.sentences = static_cast<std::int64_t>(pairs.size());
  out.tokens = loss.tokens;
  out.tokens_per_s = static_cast<double>(written) / spent.count();
  return out;
}

}  // namespace translator
