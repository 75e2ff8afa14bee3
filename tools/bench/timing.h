/// Clocks, medians, and the resources a process used.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <type_traits>
#include <vector>

#include <bench/workloads.h>

namespace bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The q-quantile of samples, 0 <= q < 1: the sample at position q·n in ascending order.
inline double quantile(std::vector<double> samples, double q) {
  std::sort(samples.begin(), samples.end());
  return samples[std::min(samples.size() - 1,
                          static_cast<std::size_t>(q * static_cast<double>(samples.size())))];
}

/// The middle sample, or the mean of the two in the middle.
inline double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t half = samples.size() / 2;
  return samples.size() % 2 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

/// The median time of f() in seconds, over at least five runs and `seconds`.
template <class F>
double median_time(F&& f, double seconds = 0.6) {
  f();
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < 5 || seconds_since(begin) < seconds) {
    const auto start = Clock::now();
    f();
    times.push_back(seconds_since(start));
  }
  return median(std::move(times));
}

/// Seconds of each call of f() after five untimed calls: at most 200, and after five no more than the
/// options' time allows. f may take a bool: whether the call is untimed.
template <class F>
std::vector<double> sample_times(const WorkloadOptions& options, F&& f) {
  constexpr std::size_t warm_up = 5, most = 200, least = 5;
  const auto call = [&](bool untimed) {
    if constexpr (std::is_invocable_v<F&, bool>) {
      f(untimed);
    } else {
      f();
    }
  };
  for (std::size_t i = 0; i < warm_up; ++i) call(true);
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < most && (times.size() < least || seconds_since(begin) < options.seconds)) {
    const auto start = Clock::now();
    call(false);
    times.push_back(seconds_since(start));
  }
  return times;
}

/// CPU time of this process so far, all threads, in seconds.
double processor_seconds();
/// The peak resident memory of this process, in MiB.
double peak_rss_mib();

}  // namespace bench
