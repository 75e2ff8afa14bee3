#include <bench/workloads.h>

namespace bench {

const std::vector<Workload>& workloads() {
  const auto of_size = [](const char* size, auto workload) {
    return
        [size, workload](const WorkloadOptions& options, const Emit& emit) { workload(size, options, emit); };
  };
  using OptionNames = std::vector<std::string>;
  static const OptionNames translator{"--batch", "--hidden", "--steps", "--words"};
  static const OptionNames classifier{"--batch", "--hidden", "--steps", "--ragged"};
  static const OptionNames cell{"--batch", "--hidden", "--steps"};
  static const std::vector<Workload> all = {
      {"seq2seq-small", "B 1, H 256, 10 → 10 tokens, V 3000/4500, one-layer GRU encoder, additive attention",
       translator, of_size("small", seq2seq_training)},
      {"seq2seq-medium", "B 32, H 256, 20 → 20 tokens, V 5000", translator,
       of_size("medium", seq2seq_training)},
      {"seq2seq-large", "B 64, H 512, 30 → 30 tokens, V 10000, two-layer bidirectional encoder", translator,
       of_size("large", seq2seq_training)},
      {"gru-small", "30 → 64 features, 2 layers, T 50, B 32, scores from the last step", classifier,
       of_size("small", gru_training)},
      {"gru-large", "512 → 512 features, 1 layer, T 50, B 64", classifier, of_size("large", gru_training)},
      {"lstm-small", "the same as gru-small with LSTMs", classifier, of_size("small", lstm_training)},
      {"lstm-large", "the same as gru-large with an LSTM", classifier, of_size("large", lstm_training)},
      {"rau-small", "the same as gru-small with RAUs", classifier, of_size("small", rau_training)},
      {"rau-large", "the same as gru-large with a RAU", classifier, of_size("large", rau_training)},
      {"decode-small", "greedy decoding with the network of seq2seq-small", translator,
       of_size("small", greedy_decoding)},
      {"decode-medium", "greedy decoding with the network of seq2seq-medium", translator,
       of_size("medium", greedy_decoding)},
      {"cell-small", "a cell written in plain ops (examples/custom_cell), H 64, T 50, B 32", cell,
       of_size("small", custom_cell_training)},
      {"cell-large", "the same with H 256", cell, of_size("large", custom_cell_training)},
      {"micro",
       "overhead of an op, GB/s of pointwise ops and softmax, GFLOP/s of products",
       {},
       micro_benchmarks},
  };
  return all;
}

}  // namespace bench
