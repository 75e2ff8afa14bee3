#include <bench/workloads.h>

namespace bench {

const std::vector<Workload>& workloads() {
  const auto of_size = [](const char* size, auto workload) {
    return [size, workload](const Options& options, const Emit& emit) { workload(size, options, emit); };
  };
  using Names = std::vector<std::string>;
  static const Names translator{"--batch", "--hidden", "--steps", "--words"};
  static const Names classifier{"--batch", "--hidden", "--steps", "--ragged"};
  static const Names cell{"--batch", "--hidden", "--steps"};
  static const std::vector<Workload> all = {
      {"seq2seq-small", "B 1, H 256, 10 → 10 tokens, V 3000/4500, one-layer GRU encoder, additive attention",
       translator, of_size("small", seq2seq)},
      {"seq2seq-medium", "B 32, H 256, 20 → 20 tokens, V 5000", translator, of_size("medium", seq2seq)},
      {"seq2seq-large", "B 64, H 512, 30 → 30 tokens, V 10000, two-layer bidirectional encoder", translator,
       of_size("large", seq2seq)},
      {"gru-small", "30 → 64 features, 2 layers, T 50, B 32, scores from the last step", classifier,
       of_size("small", gru)},
      {"gru-large", "512 → 512 features, 1 layer, T 50, B 64", classifier, of_size("large", gru)},
      {"rau-small", "the same with RAUs", classifier, of_size("small", rau)},
      {"rau-large", "the same with a RAU", classifier, of_size("large", rau)},
      {"decode-small", "greedy decoding with the network of seq2seq-small", translator,
       of_size("small", decode)},
      {"decode-medium", "greedy decoding with the network of seq2seq-medium", translator,
       of_size("medium", decode)},
      {"cell-small", "a cell written from plain ops (examples/custom_cell), H 64, T 50, B 32", cell,
       of_size("small", custom_cell)},
      {"cell-large", "the same with H 256", cell, of_size("large", custom_cell)},
      {"micro", "cost of an op, GB/s of pointwise ops and softmax, GFLOP/s of products", {}, micro},
  };
  return all;
}

}  // namespace bench
