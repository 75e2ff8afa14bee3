/// A yardstick for a training step on this machine: its products through cblas_sgemm, one after the other,
/// and its pointwise passes as fused vector loops. Only packed products can pass it.
#pragma once

#include <cstdint>
#include <vector>

namespace bench {

/// C [m, n] = op(A) op(B), `count` times a step.
struct Product {
  std::int64_t count, m, n, k;
  bool ta, tb;
};

/// A workload's arithmetic.
struct Work {
  std::vector<Product> products = {};
  std::int64_t batch = 0, hidden = 0;
  double gate_steps = 0;  ///< steps of GRU gates, forward and back, over batch × hidden
  std::int64_t attention_steps = 0,
               positions = 0;          ///< queries a step of each sequence, and what each attends to
  std::int64_t rows = 0, classes = 0;  ///< of the cross entropy
  std::int64_t parameters = 0;         ///< that Adam updates

  /// A linear layer `in` → `out` over `rows` rows: the product forward, the two backward. With several steps
  /// the first two are done `rows / steps` rows at a time, and the weight's once.
  void add_linear(std::int64_t steps, std::int64_t rows, std::int64_t in, std::int64_t out,
                  std::int64_t copies = 1, bool input_gradient = true);
};

/// Milliseconds of the products on `threads` threads of OpenBLAS, each product's median times its count.
double products_ms(const Work& work, int threads);
/// Milliseconds of the pointwise passes on rill's threads.
double pointwise_ms(const Work& work);
/// Both together, measured in a child process, so that this one's memory and threads stay as they are. To be
/// called before the first parallel operation. Throws rill::Error when the child fails.
double floor_ms(const Work& work, int threads);

}  // namespace bench
