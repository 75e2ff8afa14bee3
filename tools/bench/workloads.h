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
  double seconds = 8;      ///< most timed seconds
  std::int64_t batch = 0;  ///< 0: the workload's own
};

struct Workload {
  std::string name;
  std::string what;
  std::function<void(const Options&, const Emit&)> run;
};

/// All workloads in the order they are listed to the user.
const std::vector<Workload>& workloads();

/// A training step of nn::Seq2Seq (forward, backward, Adam), in three sizes.
void seq2seq(const std::string& size, const Options& options, const Emit& emit);
/// Cost of an op, memory throughput of pointwise ops and softmax, speed of products.
void micro(const Options& options, const Emit& emit);

}  // namespace bench
