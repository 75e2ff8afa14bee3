/// What rill-bench measures. Sizes, semantics and field names are those of the PyTorch benchmarks it is
/// compared with.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace bench {

/// Takes each measurement as it is made.
using Emit = std::function<void(nlohmann::ordered_json)>;

struct Options {
  double seconds = 8;  ///< most timed seconds
  // Other sizes than the workload's own, where they are not 0.
  std::int64_t batch = 0, hidden = 0, steps = 0, words = 0;
  bool ragged = false;  ///< lengths uniform in 1 … steps instead of full rows (gru and rau)
};

struct Workload {
  std::string name;
  std::string what;
  std::vector<std::string> options;  ///< of those for other sizes, which it knows
  std::function<void(const Options&, const Emit&)> run;
};

/// All workloads in the order they are listed to the user.
const std::vector<Workload>& workloads();

/// A training step of nn::Seq2Seq (forward, backward, Adam): small, medium or large.
void seq2seq(const std::string& size, const Options& options, const Emit& emit);
/// Greedy decoding with the same networks.
void decode(const std::string& size, const Options& options, const Emit& emit);
/// A training step of a sequence classifier: small or large.
void gru(const std::string& size, const Options& options, const Emit& emit);
void rau(const std::string& size, const Options& options, const Emit& emit);
/// A training step of examples/custom_cell, whose cell is written from plain ops: small or large.
void custom_cell(const std::string& size, const Options& options, const Emit& emit);
/// Cost of an op, memory throughput of pointwise ops and softmax, speed of products.
void micro(const Options& options, const Emit& emit);

}  // namespace bench
