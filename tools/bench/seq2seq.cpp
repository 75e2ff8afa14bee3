#include <algorithm>
#include <map>

#include <bench/timing.h>
#include <bench/training.h>
#include <rill/core/core.h>
#include <rill/nn/nn.h>

namespace bench {
namespace {

using rill::Tensor;

struct TranslatorSizes {
  std::int64_t batch, hidden, source_steps, target_steps, source_words, target_words, layers;
  bool bidirectional;
};

const std::map<std::string, TranslatorSizes> sizes = {
    {"small", {1, 256, 10, 10, 3000, 4500, 1, false}},
    {"medium", {32, 256, 20, 20, 5000, 5000, 1, false}},
    {"large", {64, 512, 30, 30, 10000, 10000, 2, true}},
};

rill::nn::Seq2SeqOptions network(const TranslatorSizes& s) {
  return {.source_vocabulary = s.source_words,
          .target_vocabulary = s.target_words,
          .embedding_dim = s.hidden,
          .hidden_size = s.hidden,
          .num_layers = s.layers,
          .bidirectional = s.bidirectional,
          .dropout = 0.1,
          .relu_input = false};
}

Tensor tokens(std::int64_t steps, std::int64_t batch, std::int64_t words, rill::Rng& rng) {
  Tensor ids = rill::empty({steps, batch}, rill::int64);
  for (std::int64_t& id : ids.mutable_span<std::int64_t>())
    id = 3 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(words - 3)));
  return ids;
}

/// Random sentences, the same in every run.
struct RandomSentences {
  Tensor source, target_in, target_out;
  RandomSentences(const TranslatorSizes& s, rill::Rng& rng)
      : source(tokens(s.source_steps, s.batch, s.source_words, rng)),
        target_in(rill::zeros({s.target_steps, s.batch}, rill::int64)),
        target_out(tokens(s.target_steps, s.batch, s.target_words, rng)) {
    target_in.narrow(0, 1, s.target_steps - 1).copy_(target_out.narrow(0, 0, s.target_steps - 1));
  }
};

/// The products and pointwise passes of one training step.
Work translator_work(const TranslatorSizes& s) {
  const std::int64_t h = s.hidden, directions = s.bidirectional ? 2 : 1;
  const std::int64_t read = s.source_steps * s.batch, written = s.target_steps * s.batch;
  Work work{.batch = s.batch,
            .hidden = h,
            .gate_steps = static_cast<double>(s.layers * directions * s.source_steps + s.target_steps),
            .attention_steps = s.target_steps,
            .positions = s.source_steps,
            .rows = written,
            .classes = s.target_words};
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    work.add_linear(1, read, layer == 0 ? h : directions * h, 3 * h, directions);
    work.add_linear(s.source_steps, read, h, 3 * h, directions);
  }
  work.add_linear(1, read, h, h);                         // keys
  work.add_linear(s.target_steps, written, h, h);         // queries
  work.add_linear(1, written, h, 3 * h);                  // embedded targets
  work.add_linear(s.target_steps, written, h, 3 * h, 2);  // contexts and states
  work.add_linear(1, written, 2 * h, s.target_words);
  return work;
}

TranslatorSizes sizes_of(const std::string& size, const WorkloadOptions& options) {
  TranslatorSizes s = sizes.at(size);
  if (options.batch > 0) s.batch = options.batch;
  if (options.hidden > 0) s.hidden = options.hidden;
  if (options.steps > 0) s.source_steps = s.target_steps = options.steps;
  if (options.words > 0) s.source_words = s.target_words = options.words;
  return s;
}

}  // namespace

void seq2seq_training(const std::string& size, const WorkloadOptions& options, const Emit& emit) {
  const TranslatorSizes s = sizes_of(size, options);
  rill::Rng rng(1);
  const rill::nn::Seq2Seq model(network(s), rng);
  const RandomSentences data(s, rng);
  const auto loss = [&] { return model.loss(data.source, Tensor(), data.target_in, data.target_out); };
  measure_training({model, loss, s.batch * s.target_steps, translator_work(s)}, options, emit);
}

void greedy_decoding(const std::string& size, const WorkloadOptions& options, const Emit& emit) {
  const TranslatorSizes s = sizes_of(size, options);
  rill::Rng rng(1);
  rill::nn::Seq2Seq model(network(s), rng);
  model.eval();
  const RandomSentences data(s, rng);
  // Every sentence takes all steps: the end is banned.
  const rill::nn::BeamSearchOptions greedy{.start = 0, .end = 0, .banned = {0}, .max_steps = s.target_steps};
  const std::vector<double> times =
      sample_times(options, [&] { model.search(data.source, Tensor(), greedy); });
  const double ms = 1e3 * median(times);
  emit({{"metric", "greedy_decode"},
        {"batch", s.batch},
        {"ms_median", ms},
        {"ms_p10", 1e3 * quantile(times, 0.1)},
        {"ms_p90", 1e3 * quantile(times, 0.9)},
        {"runs", times.size()},
        {"tokens_per_s", 1e3 * static_cast<double>(s.batch * s.target_steps) / ms}});
}

}  // namespace bench
