#include <cmath>

#include <bench/floor.h>
#include <bench/timing.h>
#include <rill/core/kernels/loss.h>
#include <rill/core/kernels/reduce.h>
#include <rill/core/parallel.h>
#include <rill/nn/attention/attention_kernels.h>
#include <rill/nn/recurrent/gru.h>
#include <rill/nn/recurrent/unit.h>
#include <rill/optim/kernels/update.h>

namespace bench {
namespace {

namespace kernels = rill::kernels;
std::vector<float> floats(std::int64_t n) { return std::vector<float>(static_cast<std::size_t>(n), 0.01f); }

/// The median seconds of f(row) for all `rows` rows, on all threads.
template <class F>
double time_rows(std::int64_t rows, std::int64_t grain, F&& f) {
  return median_time(
      [&] {
        rill::parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) f(row);
        });
      },
      0.2);
}

/// The gates of one step, forward and backward, for the whole batch.
double gates_seconds(std::int64_t batch, std::int64_t h) {
  const auto& unit = rill::nn::detail::gru_unit.kernels<float>();
  std::vector<float> products = floats(batch * 3 * h), gates = floats(batch * 3 * h), q = floats(batch * h),
                     state = floats(batch * h);
  const std::vector<float> bias = floats(4 * h), previous = floats(batch * h);
  const std::int64_t grain = 1 + 8192 / (3 * h);
  const double forward = time_rows(batch, grain, [&](std::int64_t i) {
    unit.forward({.count = 1,
                  .hidden = h,
                  .h = {previous.data() + i * h, h},
                  .bias = bias.data(),
                  .products = products.data() + i * 3 * h,
                  .gates = gates.data() + i * 3 * h,
                  .q = q.data() + i * h,
                  .next_h = {state.data() + i * h, h}});
  });
  const double backward = time_rows(batch, grain, [&](std::int64_t i) {
    unit.backward({.count = 1,
                   .hidden = h,
                   .h = {previous.data() + i * h, h},
                   .dy = {bias.data(), h},
                   .gates = gates.data() + i * 3 * h,
                   .q = q.data() + i * h,
                   .dh = state.data() + i * h});
  });
  return forward + backward;
}

/// One step of attention, forward and backward, for the whole batch.
double attention_seconds(std::int64_t batch, std::int64_t h, std::int64_t positions) {
  const std::vector<float> query = floats(batch * h), v = floats(h), keys = floats(batch * positions * h),
                           values = floats(batch * positions * h), dcontext = floats(batch * h);
  std::vector<float> weights = floats(batch * positions), context = floats(batch * h),
                     dquery = floats(batch * h), dv = floats(batch * h),
                     dkeys = floats(batch * positions * h), dscores = floats(batch * positions);
  const auto source = [&](std::int64_t i) {
    return kernels::AttentionSource<float>{
        positions, h, h, keys.data() + i * positions * h, h, values.data() + i * positions * h, h};
  };
  const std::int64_t grain = 1 + 8192 / (positions * h);
  const double forward = time_rows(batch, grain, [&](std::int64_t i) {
    kernels::attend(source(i), query.data() + i * h, v.data(), weights.data() + i * positions,
                    context.data() + i * h);
  });
  const double backward = time_rows(batch, grain, [&](std::int64_t i) {
    kernels::attend_backward<float>(
        source(i), query.data() + i * h, v.data(), weights.data() + i * positions, dcontext.data() + i * h,
        nullptr, dscores.data() + i * positions,
        {dquery.data() + i * h, dv.data() + i * h, dkeys.data() + i * positions * h, h});
  });
  return forward + backward;
}

/// Bias, softmax and gradient of all rows of scores, in place.
double cross_entropy_seconds(std::int64_t rows, std::int64_t classes) {
  const std::vector<float> bias = floats(classes);
  std::vector<float> scores = floats(rows * classes);
  return time_rows(rows, 1 + 8192 / classes, [&](std::int64_t i) {
    float* const row = scores.data() + i * classes;
    kernels::add_bias(bias.data(), row, classes);
    const float total = kernels::exp_in_place(kernels::max(row, classes), row, classes);
    kernels::scale_and_subtract(1 / total, 0.0f, static_cast<const float*>(nullptr), row, classes);
  });
}

double adam_seconds(std::int64_t n) {
  std::vector<float> p = floats(n), m = floats(n), v = floats(n);
  const std::vector<float> gradient = floats(n);
  constexpr std::int64_t chunk = 16384;
  const kernels::AdamCoefficients c{1, 0, 1, 0.9, 0.999, 1e-3, 1, 1e-8};
  return time_rows((n + chunk - 1) / chunk, 1, [&](std::int64_t i) {
    const std::int64_t at = i * chunk;
    kernels::adam<float>(c, {std::min(chunk, n - at),
                             p.data() + at,
                             gradient.data() + at,
                             {m.data() + at, v.data() + at, nullptr}});
  });
}

}  // namespace

double pointwise_ms(const Work& work) {
  double seconds = adam_seconds(work.parameters);
  if (work.gate_steps > 0) seconds += work.gate_steps * gates_seconds(work.batch, work.hidden);
  if (work.attention_steps > 0) {
    seconds += static_cast<double>(work.attention_steps) *
               attention_seconds(work.batch, work.hidden, work.positions);
  }
  if (work.rows > 0) seconds += cross_entropy_seconds(work.rows, work.classes);
  return 1e3 * seconds;
}

}  // namespace bench
