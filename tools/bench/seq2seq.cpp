#include <map>

#include <bench/timing.h>
#include <bench/workloads.h>
#include <rill/core/core.h>
#include <rill/nn/nn.h>
#include <rill/optim/optim.h>

namespace bench {
namespace {

using rill::Tensor;

struct Sizes {
  std::int64_t batch, hidden, source_steps, target_steps, source_words, target_words, layers;
  bool bidirectional;
};

const std::map<std::string, Sizes> sizes = {
    {"small", {1, 256, 10, 10, 3000, 4500, 1, false}},
    {"medium", {32, 256, 20, 20, 5000, 5000, 1, false}},
    {"large", {64, 512, 30, 30, 10000, 10000, 2, true}},
};

rill::nn::Seq2SeqOptions network(const Sizes& s) {
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
  for (std::int64_t& id : ids.span<std::int64_t>())
    id = 3 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(words - 3)));
  return ids;
}

/// Random sentences, the same in every run.
struct Data {
  Tensor source, target_in, target_out;
  Data(const Sizes& s, rill::Rng& rng)
      : source(tokens(s.source_steps, s.batch, s.source_words, rng)),
        target_in(rill::zeros({s.target_steps, s.batch}, rill::int64)),
        target_out(tokens(s.target_steps, s.batch, s.target_words, rng)) {
    target_in.narrow(0, 1, s.target_steps - 1).copy_(target_out.narrow(0, 0, s.target_steps - 1));
  }
};

/// Times of the parts of each step, in seconds.
struct Times {
  std::vector<double> forward, backward, optimizer, total;
};

/// One training step; returns the loss.
double step(const rill::nn::Seq2Seq& model, rill::optim::Adam& adam, const Data& data, Times* times) {
  const auto t0 = Clock::now();
  adam.zero_grad();
  const Tensor loss = model.loss(data.source, Tensor(), data.target_in, data.target_out);
  const auto t1 = Clock::now();
  loss.backward();
  const auto t2 = Clock::now();
  adam.step();
  const auto t3 = Clock::now();
  if (times) {
    const auto add = [](std::vector<double>& to, auto from, auto till) {
      to.push_back(std::chrono::duration<double>(till - from).count());
    };
    add(times->forward, t0, t1);
    add(times->backward, t1, t2);
    add(times->optimizer, t2, t3);
    add(times->total, t0, t3);
  }
  return loss.item();
}

}  // namespace

void seq2seq(const std::string& size, const Options& options, const Emit& emit) {
  constexpr std::size_t warm_up = 5, most_steps = 200, least_steps = 5;
  Sizes s = sizes.at(size);
  if (options.batch > 0) s.batch = options.batch;
  rill::Rng rng(1);
  rill::nn::Seq2Seq model(network(s), rng);
  rill::optim::Adam adam(model.parameters());
  const Data data(s, rng);
  const double first = step(model, adam, data, nullptr);
  for (std::size_t i = 1; i < warm_up; ++i) step(model, adam, data, nullptr);
  Times times;
  double last = first;
  const double processor = processor_seconds();
  const auto begin = Clock::now();
  while (times.total.size() < most_steps &&
         (times.total.size() < least_steps || seconds_since(begin) < options.seconds)) {
    last = step(model, adam, data, &times);
  }
  const double wall = seconds_since(begin);
  const auto ms = [](const std::vector<double>& samples) { return 1e3 * median(samples); };
  const std::int64_t items = s.batch * s.target_steps;
  emit({{"metric", "train_step"},
        {"optimizer", "adam"},
        {"ms_median", ms(times.total)},
        {"ms_p10", 1e3 * quantile(times.total, 0.1)},
        {"ms_p90", 1e3 * quantile(times.total, 0.9)},
        {"steps", times.total.size()},
        {"forward_ms", ms(times.forward)},
        {"backward_ms", ms(times.backward)},
        {"optimizer_ms", ms(times.optimizer)},
        {"items_per_step", items},
        {"items_per_s", 1e3 * static_cast<double>(items) / ms(times.total)},
        {"cores_used", (processor_seconds() - processor) / wall},
        {"params", model.num_parameters()},
        {"first_loss", first},
        {"last_loss", last}});
}

}  // namespace bench
