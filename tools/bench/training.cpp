#include <bench/training.h>

#include <vector>

#include <bench/timing.h>
#include <rill/core/core.h>
#include <rill/optim/optim.h>

namespace bench {
namespace {

using rill::Tensor;

/// Seconds of the phases of each step.
struct PhaseTimes {
  std::vector<double> forward, backward, optimizer, total;
};

/// One training step; returns the loss.
double step(const std::function<Tensor()>& loss_of, rill::optim::Adam& adam, PhaseTimes* times) {
  const auto t0 = Clock::now();
  adam.zero_grad();
  const Tensor loss = loss_of();
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

void measure_training(const TrainingWorkload& training, const WorkloadOptions& options, const Emit& emit) {
  const auto& [model, loss, items, _] = training;
  Work work = training.work;
  work.parameters = model.num_parameters();
  const double floor = floor_ms(work, rill::num_threads());
  rill::optim::Adam adam(model.parameters());
  const double first = step(loss, adam, nullptr);
  double last = first;
  PhaseTimes times;
  const double processor = processor_seconds();
  const auto begin = Clock::now();
  sample_times(options, [&](bool warm_up) { last = step(loss, adam, warm_up ? nullptr : &times); });
  const double wall = seconds_since(begin);
  const auto ms = [](const std::vector<double>& samples) { return 1e3 * median(samples); };
  emit({{"metric", "train_step"},
        {"optimizer", "adam"},
        {"ms_median", ms(times.total)},
        {"ms_p10", 1e3 * quantile(times.total, 0.1)},
        {"ms_p90", 1e3 * quantile(times.total, 0.9)},
        {"steps", times.total.size()},
        {"forward_ms", ms(times.forward)},
        {"backward_ms", ms(times.backward)},
        {"optimizer_ms", ms(times.optimizer)},
        {"floor_ms", floor},
        {"ratio_to_floor", ms(times.total) / floor},
        {"items_per_step", items},
        {"items_per_s", 1e3 * static_cast<double>(items) / ms(times.total)},
        {"cores_used", (processor_seconds() - processor) / wall},
        {"params", model.num_parameters()},
        {"first_loss", first},
        {"last_loss", last}});
}

}  // namespace bench
