#include <algorithm>

#include <bench/timing.h>
#include <bench/workloads.h>
#include <rill/core/core.h>

namespace bench {
namespace {

using rill::Tensor;

/// Nanoseconds per addition of n floats in a chain of a thousand: forward with and without recording, and
/// backward.
void op_overhead(std::int64_t n, const Emit& emit) {
  constexpr int ops = 1000;
  Tensor a = rill::ones({n}).set_requires_grad(), b = rill::ones({n}).set_requires_grad();
  const auto chain = [&] {
    Tensor x = a;
    for (int i = 0; i < ops; ++i) x = x + b;
    return x;
  };
  const double forward = median_time(chain);
  std::vector<double> backward;
  for (int i = 0; i < 200; ++i) {
    a.zero_grad();
    b.zero_grad();
    const Tensor y = rill::sum(chain());
    const auto begin = Clock::now();
    y.backward();
    backward.push_back(seconds_since(begin));
  }
  const rill::NoGrad no_grad;
  const double inference = median_time(chain);
  const auto ns = [](double seconds) { return seconds / ops * 1e9; };
  emit({{"metric", "op_overhead"},
        {"op", "add" + std::to_string(n)},
        {"forward_ns", ns(forward)},
        {"backward_ns", ns(median(backward))},
        {"no_grad_ns", ns(inference)}});
}

void elementwise(const Emit& emit) {
  rill::Rng rng(1);
  const Tensor x = rill::randn({1000, 1000}, rng), y = rill::randn({1000, 1000}, rng);
  const auto measure = [&](const char* op, int passes, auto f) {
    const double seconds = median_time(f);
    const auto elements = static_cast<double>(x.numel());
    emit({{"metric", "elementwise_1M"},
          {"op", op},
          {"us", 1e6 * seconds},
          {"gb_per_s", passes * elements * 4 / seconds / 1e9},
          {"gelem_per_s", elements / seconds / 1e9}});
  };
  measure("add", 3, [&] { return x + y; });
  measure("mul", 3, [&] { return x * y; });
  measure("tanh", 2, [&] { return rill::tanh(x); });
  measure("sigmoid", 2, [&] { return rill::sigmoid(x); });
  measure("exp", 2, [&] { return rill::exp(x); });
  measure("softmax", 2, [&] { return rill::softmax(x, 1); });
  measure("log_softmax", 2, [&] { return rill::log_softmax(x, 1); });
}

/// Reading alone: the sum of 12.9 MB, as much as the weights that decode-medium reads per token.
void reading(const Emit& emit) {
  const Tensor x = rill::ones({3'225'000});
  const double seconds = median_time([&] { return rill::sum(x); });
  emit({{"metric", "read_12.9MB"},
        {"op", "sum"},
        {"gb_per_s", static_cast<double>(4 * x.numel()) / seconds / 1e9}});
}

void products(const Emit& emit) {
  rill::Rng rng(2);
  struct ProductSize {
    std::int64_t m, k, n;
  };
  for (const ProductSize& s : {ProductSize{32, 256, 768}, ProductSize{64, 512, 1536},
                               ProductSize{1920, 512, 10000}, ProductSize{1024, 1024, 1024}}) {
    const Tensor a = rill::randn({s.m, s.k}, rng), b = rill::randn({s.k, s.n}, rng),
                 weight = rill::randn({s.n, s.k}, rng);
    const auto measure = [&](const char* op, auto f) {
      const double seconds = median_time(f);
      emit({{"metric", "matmul"},
            {"op", op},
            {"m", s.m},
            {"k", s.k},
            {"n", s.n},
            {"us", 1e6 * seconds},
            {"gflops", 2e-9 * static_cast<double>(s.m * s.k * s.n) / seconds}});
    };
    measure("mm", [&] { return rill::matmul(a, b); });
    measure("linear", [&] { return rill::linear(a, weight); });
  }
}

}  // namespace

void micro_benchmarks(const WorkloadOptions&, const Emit& emit) {
  op_overhead(16, emit);
  op_overhead(64, emit);
  const rill::NoGrad no_grad;
  elementwise(emit);
  reading(emit);
  products(emit);
}

}  // namespace bench
