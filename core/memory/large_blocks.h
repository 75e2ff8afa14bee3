/// Large blocks out of a range of addresses; internal to rill::memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace rill::memory::detail {

/// Memory that the system gave, small blocks included.
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

/// Whole pages out of a reserved range of addresses. Free neighbours coalesce, and a request takes the
/// lowest addresses that are long enough; so blocks crowd at the low end, and what is held stays a few per
/// cent above its high-water mark in use (figures in docs/performance.md). This is address-ordered first fit:
/// Wilson, Johnstone, Neely, Boles, "Dynamic Storage Allocation: A Survey and Critical Review", 1995.
///
/// Free memory above the limit goes back to the system, the highest addresses first.
class LargeBlocks {
 public:
  /// Counts in `counted` what the system gives. Addresses are reserved `range` bytes at a time, less where
  /// they are short, and never returned: an object that goes out of use should be trimmed first.
  explicit LargeBlocks(SystemCount& counted, std::int64_t range = std::int64_t{64} << 30);

  /// A block of at least `bytes`, which are more than 0, or null when the system has none.
  void* take(std::size_t bytes) noexcept;
  /// Returns a block of `take(bytes)`.
  void give(void* block, std::size_t bytes) noexcept;

  /// Gives all that is free back to the system.
  void trim() noexcept;
  /// The most bytes to keep free (default 4 GiB).
  void set_limit(std::int64_t bytes) noexcept;
  /// Bytes that are free and not given back.
  std::int64_t cached() noexcept;

  /// Between these no other thread changes anything; for forks.
  void lock() noexcept { mutex_.lock(); }
  void unlock() noexcept { mutex_.unlock(); }

 private:
  struct Extent {
    std::int64_t bytes;
    bool resident;  // was used and not given back; what is not resident may not even be touched
  };
  using Free = std::map<char*, Extent>;  // by address; extents that touch differ in `resident`

  std::int64_t whole_pages(std::int64_t bytes) const noexcept { return (bytes + page_ - 1) / page_ * page_; }
  Free::iterator first_fit(std::int64_t bytes) noexcept;
  static std::int64_t resident_bytes(Free::iterator at, std::int64_t bytes) noexcept;
  bool reserve(std::int64_t bytes) noexcept;
  void cut(Free::iterator at, std::int64_t bytes) noexcept;
  Free::iterator join(Free::iterator at) noexcept;
  void keep_at_most(std::int64_t bytes) noexcept;
  Free::iterator upper_part(Free::iterator at, std::int64_t bytes);

  SystemCount& counted_;
  const std::int64_t page_, range_;
  std::mutex mutex_;
  Free free_;
  std::int64_t cached_ = 0;
  std::int64_t limit_ = std::int64_t{4} << 30;
};

}  // namespace rill::memory::detail
