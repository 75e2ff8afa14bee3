/// Large blocks from a reserved address range. Internal to rill::memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace rill::memory::detail {

/// Statistics of memory obtained from the system, including small blocks.
class SystemCount {
 public:
  /// Records an allocation of `bytes`.
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

/// Allocates whole pages from a reserved address range. Adjacent free blocks are merged, and an allocation
/// takes the lowest addresses that fit; so blocks concentrate at the low end, and the memory held stays
/// within a few per cent of the high-water mark in use (figures in docs/performance.md). This is
/// address-ordered first fit: Wilson, Johnstone, Neely, Boles, "Dynamic Storage Allocation: A Survey and
/// Critical Review", 1995.
///
/// Free memory above the limit is returned to the system, highest addresses first.
class LargeBlocks {
 public:
  /// Records memory from the system in `counted`. Addresses are reserved `range` bytes at a time, less if the
  /// address space is limited, and never returned: trim an object before it goes out of use.
  explicit LargeBlocks(SystemCount& counted, std::int64_t range = std::int64_t{64} << 30);

  /// A block of at least `bytes` > 0, or null if the system has none.
  void* take(std::size_t bytes) noexcept;
  /// Frees a block of `take(bytes)`.
  void give(void* block, std::size_t bytes) noexcept;

  /// Returns all free memory to the system.
  void trim() noexcept;
  /// Limit on the free bytes kept (default 4 GiB).
  void set_limit(std::int64_t bytes) noexcept;
  /// Free bytes that have not been returned to the system.
  std::int64_t cached() noexcept;

  /// Block all other threads in between; for forks.
  void lock() noexcept { mutex_.lock(); }
  void unlock() noexcept { mutex_.unlock(); }

 private:
  struct Extent {
    std::int64_t bytes;
    bool resident;  // committed; non-resident memory must not be accessed
  };
  using Free = std::map<char*, Extent>;  // by address; adjacent extents differ in `resident`

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
