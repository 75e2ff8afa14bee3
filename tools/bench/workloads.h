/// The workloads of rill-bench. Sizes, semantics and field names are those of the PyTorch benchmarks it is
/// compared with.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace bench {

/// Receives each measurement as it is made.
using Emit = std::function<void(nlohmann::ordered_json)>;

struct WorkloadOptions {
  double seconds = 8;  ///< most timed seconds
  // Sizes that replace the workload's own, unless 0.
  std::int64_t batch = 0, hidden = 0, steps = 0, words = 0;
  bool ragged = false;  ///< lengths uniform in 1 … steps instead of full rows (gru, lstm, rau)
};

struct Workload {
  std::string name;
  std::string what;
  std::vector<std::string> options;  ///< the options for sizes that it has
  std::function<void(const WorkloadOptions&, const Emit&)> run;
};

/// All workloads in the order of the help text.
const std::vector<Workload>& workloads();

/// A training step of nn::Seq2Seq (forward, backward, Adam): small, medium or large.
void seq2seq_training(const std::string& size, const WorkloadOptions& options, const Emit& emit);
/// Greedy decoding with the same networks.
void greedy_decoding(const std::string& size, const WorkloadOptions& options, const Emit& emit);
/// A training step of a sequence classifier: small or large.
void gru_training(const std::string& size, const WorkloadOptions& options, const Emit& emit);
void lstm_training(const std::string& size, const WorkloadOptions& options, const Emit& emit);
void rau_training(const std::string& size, const WorkloadOptions& options, const Emit& emit);
/// A training step of examples/custom_cell, whose cell is written in plain ops: small or large.
void custom_cell_training(const std::string& size, const WorkloadOptions& options, const Emit& emit);
/// Overhead of an op, memory throughput of pointwise ops and softmax, speed of products.
void micro_benchmarks(const WorkloadOptions& options, const Emit& emit);

}  // namespace bench
