/// Threads in tests.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include <rill/core/parallel.h>

namespace test {

/// Sets the number of threads within its scope.
class Threads {
 public:
  explicit Threads(int n) : previous_(rill::num_threads()) { rill::set_num_threads(n); }
  ~Threads() { rill::set_num_threads(previous_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int previous_;
};

/// Calls `f` once on each of `threads` threads, the number set, and counts how often it returns true. Each
/// thread waits until all have begun, at most 20 seconds.
template <class F>
int count_on_threads(int threads, F f) {
  std::atomic<int> begun{0}, count{0};
  rill::parallel_for(threads, 1, [&](std::int64_t begin, std::int64_t end) {
    begun += static_cast<int>(end - begin);
    if (f()) ++count;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (begun < threads && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  });
  return count;
}

}  // namespace test
