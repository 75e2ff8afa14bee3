/// The floor of a training step on this machine: the time of its products through cblas_sgemm, one after the
/// other, and of its pointwise passes as fused vector loops. Only packed products can be faster.
#pragma once

#include <cstdint>
#include <vector>

namespace bench {

/// C [m, n] = op(A) op(B), `count` times per step.
struct FloorProduct {
  std::int64_t count, m, n, k;
  bool ta, tb;
};

/// The arithmetic of one training step.
struct Work {
  std::vector<FloorProduct> products = {};
  std::int64_t batch = 0, hidden = 0;
  double gate_steps = 0;               ///< steps of GRU gates, forward and backward, over batch × hidden
  std::int64_t attention_steps = 0;    ///< queries of each sequence
  std::int64_t positions = 0;          ///< that each query attends to
  std::int64_t rows = 0, classes = 0;  ///< of the cross entropy
  std::int64_t parameters = 0;         ///< updated by Adam

  /// A linear layer `in` → `out` over `rows` rows: one product forward, two backward. With several steps, the
  /// forward product and the input's gradient run per step, on rows / steps rows; the weight's gradient once.
  void add_linear(std::int64_t steps, std::int64_t rows, std::int64_t in, std::int64_t out,
                  std::int64_t copies = 1, bool input_gradient = true);
};

/// Milliseconds of the products on `threads` threads of OpenBLAS: the median of each times its count.
double products_ms(const Work& work, int threads);
/// Milliseconds of the pointwise passes on rill's threads.
double pointwise_ms(const Work& work);
/// Both together, measured in a child process that leaves the memory and threads of this one alone. Must be
/// called before the first parallel operation. Throws rill::Error if the child fails.
double floor_ms(const Work& work, int threads);

}  // namespace bench
