/// What the system gave; internal to the allocators of rill::memory, which share one count.
#pragma once

#include <atomic>
#include <cstdint>

namespace rill::memory::detail {

class SystemCount {
 public:
  /// Counts `bytes` that one allocation took.
  void took(std::int64_t bytes) noexcept {
    allocations_.fetch_add(1, std::memory_order_relaxed);
    const std::int64_t now = bytes_.fetch_add(bytes) + bytes;
    std::int64_t peak = peak_.load();
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
  }
  void gave_back(std::int64_t bytes) noexcept { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::int64_t bytes() const noexcept { return bytes_.load(); }
  std::int64_t peak() const noexcept { return peak_.load(); }
  std::int64_t allocations() const noexcept { return allocations_.load(); }

 private:
  std::atomic<std::int64_t> bytes_{0}, peak_{0}, allocations_{0};
};

}  // namespace rill::memory::detail
