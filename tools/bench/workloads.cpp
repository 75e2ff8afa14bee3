#include <bench/workloads.h>

namespace bench {

const std::vector<Workload>& workloads() {
  static const auto training = [](const char* size) {
    return [size](const Options& options, const Emit& emit) { seq2seq(size, options, emit); };
  };
  static const std::vector<Workload> all = {
      {"seq2seq-small", "B 1, H 256, 10 → 10 tokens, V 3000/4500, one-layer GRU encoder, additive attention",
       training("small")},
      {"seq2seq-medium", "B 32, H 256, 20 → 20 tokens, V 5000", training("medium")},
      {"seq2seq-large", "B 64, H 512, 30 → 30 tokens, V 10000, two-layer bidirectional encoder",
       training("large")},
      {"micro", "cost of an op, GB/s of pointwise ops and softmax, GFLOP/s of products", micro},
  };
  return all;
}

}  // namespace bench
