#include <rill/nn/layers/dropout.h>

#include <atomic>

namespace rill::nn {

Dropout::Dropout(DropoutOptions options, Rng& rng) : options_(options) {
  check(options.p >= 0 && options.p <= 1, "Dropout: p {} is outside 0..1", options.p);
  const RngState stream = rng.split().state();
  key_ = {.seed = stream.seed, .stream = stream.stream, .call = 0};
}

Tensor Dropout::operator()(const Tensor& x) const {
  if (!training() || options_.p == 0) return x;
  const std::uint64_t call = std::atomic_ref(key_.call).fetch_add(1, std::memory_order_relaxed);
  return dropout(x, options_.p, {.seed = key_.seed, .stream = key_.stream, .call = call});
}

void Dropout::members(Members& m) {
  m.counter("seed", key_.seed).counter("stream", key_.stream).counter("calls", key_.call);
}

}  // namespace rill::nn
