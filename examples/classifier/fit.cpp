#include <classifier/fit.h>

#include <algorithm>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include <rill/core/core.h>
#include <rill/optim/optim.h>

namespace classifier {

using rill::Tensor;

Tensor loss(const SequenceClassifier& model, const Dataset& batch) {
  const Tensor out = model(batch.x);
  if (batch.y.dtype() == rill::int64) return rill::cross_entropy(out, batch.y);
  return rill::mse_loss(out.squeeze(1), batch.y);
}

Score score(SequenceClassifier& model, const Dataset& data) {
  constexpr std::int64_t batch_size = 250;
  const rill::NoGrad no_grad;
  model.eval();
  Score out;
  for (std::int64_t start = 0; start < data.size(); start += batch_size) {
    const std::int64_t n = std::min(batch_size, data.size() - start);
    const Dataset batch{data.x.narrow(0, start, n), data.y.narrow(0, start, n)};
    out.loss += loss(model, batch).item() * static_cast<double>(n);
    if (batch.y.dtype() != rill::int64) continue;
    const Tensor right = rill::eq(rill::argmax(model(batch.x), 1), batch.y);
    out.accuracy += rill::sum(right.to(rill::float64)).item();
  }
  out.loss /= static_cast<double>(data.size());
  out.accuracy /= static_cast<double>(data.size());
  return out;
}

namespace {

/// `next(i)` returns batch i of `steps`. Returns the mean loss.
double fit_epoch(SequenceClassifier& model, rill::optim::Adam& adam, rill::optim::CosineAnnealingLR& schedule,
                 const FitOptions& options, std::int64_t steps,
                 const std::function<Dataset(std::int64_t)>& next) {
  model.train();
  double sum = 0;
  for (std::int64_t i = 0; i < steps; ++i) {
    adam.zero_grad();
    const Tensor l = loss(model, next(i));
    l.backward();
    adam.step_clipped(options.clip > 0 ? options.clip : std::numeric_limits<double>::infinity());
    schedule.step();
    sum += l.item();
  }
  return sum / static_cast<double>(steps);
}

Score fit_epochs(SequenceClassifier& model, const Dataset& test, const FitOptions& options,
                 std::int64_t steps, const std::function<Dataset(std::int64_t, std::int64_t)>& next) {
  rill::optim::Adam adam(model.parameters(), {.lr = options.lr});
  rill::optim::CosineAnnealingLR schedule(adam, {.T_max = options.epochs * steps});
  Score last;
  for (std::int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    const double mean =
        fit_epoch(model, adam, schedule, options, steps, [&](std::int64_t i) { return next(epoch, i); });
    last = score(model, test);
    std::string line =
        fmt::format("epoch {}/{}  loss {:.4f}  test loss {:.4f}", epoch, options.epochs, mean, last.loss);
    if (test.y.dtype() == rill::int64) line += fmt::format("  accuracy {:.2f} %", 100 * last.accuracy);
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }
  return last;
}

}  // namespace

Score fit(SequenceClassifier& model, const Dataset& train, const Dataset& test, const FitOptions& options) {
  const std::int64_t steps = (train.size() + options.batch - 1) / options.batch;
  std::vector<rill::nn::BatchIndices> batches;
  return fit_epochs(model, test, options, steps, [&](std::int64_t epoch, std::int64_t i) {
    rill::Rng rng(options.seed, static_cast<std::uint64_t>(epoch));
    if (i == 0) batches = rill::nn::random_batches(train.size(), options.batch, rng);
    return train.batch(batches[static_cast<std::size_t>(i)]);
  });
}

Score fit_adding_problem(SequenceClassifier& model, std::int64_t steps, const FitOptions& options) {
  constexpr std::int64_t steps_an_epoch = 500, test_size = 1000;
  rill::Rng rng(options.seed, 1), test_rng(options.seed, 2);
  const Dataset test = adding_problem(test_size, steps, test_rng);
  return fit_epochs(model, test, options, steps_an_epoch,
                    [&](std::int64_t, std::int64_t) { return adding_problem(options.batch, steps, rng); });
}

}  // namespace classifier
