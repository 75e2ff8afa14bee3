#include <algorithm>
#include <functional>
#include <map>

#include <bench/training.h>
#include <rill/core/core.h>
#include <rill/nn/nn.h>

namespace bench {
namespace {

using rill::Tensor;

struct ClassifierSizes {
  std::int64_t batch, input, hidden, layers, steps;
};

const std::map<std::string, ClassifierSizes> sizes = {
    {"small", {32, 30, 64, 2, 50}},
    {"large", {64, 512, 512, 1, 50}},
};

/// Recurrent layers, and scores of ten classes from the last step.
class Classifier final : public rill::nn::Module {
 public:
  Classifier(rill::nn::Cell cell, const ClassifierSizes& s, rill::Rng& rng)
      : layers_({.cell = cell,
                 .layers = {.input_size = s.input, .hidden_size = s.hidden, .num_layers = s.layers}},
                rng),
        score_({.in_features = s.hidden, .out_features = classes}, rng) {}

  static constexpr std::int64_t classes = 10;

  Tensor operator()(const Tensor& x, const Tensor& lengths) const {
    const auto [output, last] = layers_(x, {.lengths = lengths});
    return score_(lengths.defined() ? last.h.select(0, -1) : output.select(0, -1));
  }
  void members(rill::nn::Members& m) override { m("layers", layers_)("score", score_); }

 private:
  rill::nn::Recurrent layers_;
  rill::nn::Linear score_;
};

/// The products and pointwise passes of one training step; the inputs need no gradient. The fourth gate of a
/// RAU counts as a third of the pointwise work of a GRU.
Work classifier_work(const ClassifierSizes& s, std::int64_t gates) {
  const std::int64_t rows = s.steps * s.batch, h = s.hidden;
  Work work{.batch = s.batch,
            .hidden = h,
            .gate_steps = static_cast<double>(s.layers * s.steps) * static_cast<double>(gates) / 3};
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    work.add_linear(1, rows, layer == 0 ? s.input : h, gates * h, 1, layer > 0);
  }
  work.add_linear(s.steps, rows, h, gates * h, s.layers);
  if (gates == 4) work.add_linear(s.steps, rows, h, h, s.layers);
  return work;
}

/// Lengths uniform in 1 … steps, longest first.
Tensor ragged_lengths(const ClassifierSizes& s, rill::Rng& rng) {
  Tensor lengths = rill::empty({s.batch}, rill::int64);
  const auto all = lengths.mutable_span<std::int64_t>();
  for (std::int64_t& length : all)
    length = 1 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(s.steps)));
  std::sort(all.begin(), all.end(), std::greater<>());
  return lengths;
}

void train_classifier(rill::nn::Cell cell, std::int64_t gates, const std::string& size,
                      const WorkloadOptions& options, const Emit& emit) {
  ClassifierSizes s = sizes.at(size);
  if (options.batch > 0) s.batch = options.batch;
  if (options.hidden > 0) s.hidden = options.hidden;
  if (options.steps > 0) s.steps = options.steps;
  rill::Rng rng(1);
  const Classifier model(cell, s, rng);
  const Tensor x = rill::randn({s.steps, s.batch, s.input}, rng);
  const Tensor lengths = options.ragged ? ragged_lengths(s, rng) : Tensor();
  Tensor y = rill::empty({s.batch}, rill::int64);
  for (std::int64_t& label : y.mutable_span<std::int64_t>())
    label = static_cast<std::int64_t>(rng.below(Classifier::classes));
  const auto loss = [&] { return rill::cross_entropy(model(x, lengths), y); };
  std::int64_t items = s.batch * s.steps;
  if (options.ragged) items = rill::sum(lengths.to(rill::float64)).item<std::int64_t>();
  measure_training({model, loss, items, classifier_work(s, gates)}, options, emit);
}

}  // namespace

void gru_training(const std::string& size, const WorkloadOptions& options, const Emit& emit) {
  train_classifier(rill::nn::Cell::gru, 3, size, options, emit);
}

void lstm_training(const std::string& size, const WorkloadOptions& options, const Emit& emit) {
  train_classifier(rill::nn::Cell::lstm, 4, size, options, emit);
}

void rau_training(const std::string& size, const WorkloadOptions& options, const Emit& emit) {
  train_classifier(rill::nn::Cell::rau, 4, size, options, emit);
}

}  // namespace bench
