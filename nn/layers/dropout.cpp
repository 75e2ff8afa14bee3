#include <rill/nn/layers/dropout.h>

namespace rill::nn {

Dropout::Dropout(DropoutOptions options, Rng& rng) : options_(options) {
  check(options.p >= 0 && options.p <= 1, "Dropout: p {} is outside 0..1", options.p);
  const RngState stream = rng.split().state();
  key_ = {.seed = stream.seed, .stream = stream.stream, .call = 0};
}

Tensor Dropout::operator()(const Tensor& x) const {
  if (!training() || options_.p == 0) return x;
  Tensor y = dropout(x, options_.p, key_);
  ++key_.call;
  return y;
}

void Dropout::members(Members& m) {
  m.counter("seed", key_.seed).counter("stream", key_.stream).counter("calls", key_.call);
}

}  // namespace rill::nn
