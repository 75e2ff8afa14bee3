/// Allocator of large blocks in reserved address ranges. Internal to rill::memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace rill::memory::detail {

/// Counts the memory obtained from the system, for small and large blocks.
class SystemCount {
 public:
  /// Counts one allocation of `bytes`.
  void add(std::int64_t bytes) noexcept {
    allocations_.fetch_add(1, std::memory_order_relaxed);
    const std::int64_t now = bytes_.fetch_add(bytes) + bytes;
    std::int64_t peak = peak_.load();
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
  }
  void remove(std::int64_t bytes) noexcept { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::int64_t bytes() const noexcept { return bytes_.load(); }
  std::int64_t peak() const noexcept { return peak_.load(); }
  std::int64_t allocations() const noexcept { return allocations_.load(); }

 private:
  std::atomic<std::int64_t> bytes_{0}, peak_{0}, allocations_{0};
};

/// Allocates whole pages by address-ordered first fit in reserved address ranges; adjacent free extents
/// coalesce. Blocks cluster at low addresses, so the memory held exceeds the high-water mark of live memory
/// by only a few per cent (docs/performance.md). See Wilson, Johnstone, Neely, Boles, "Dynamic Storage
/// Allocation: A Survey and Critical Review", 1995.
///
/// Free memory above the limit is returned to the system, highest addresses first.
class LargeBlocks {
 public:
  /// Records system memory in `counted`. Reserves `range` bytes of address space at a time (less if address
  /// space is scarce) and never unmaps them; call trim() before destruction.
  explicit LargeBlocks(SystemCount& counted, std::int64_t range = std::int64_t{64} << 30);

  /// A block of at least `bytes` > 0, or null if memory is exhausted.
  void* allocate(std::size_t bytes) noexcept;
  /// Frees a block returned by `allocate(bytes)`.
  void deallocate(void* block, std::size_t bytes) noexcept;

  /// Returns all free memory to the system.
  void trim() noexcept;
  /// Limits the free bytes kept for reuse (default 4 GiB).
  void set_limit(std::int64_t bytes) noexcept;
  /// Free bytes kept for reuse.
  std::int64_t cached() noexcept;

  /// Block all changes by other threads, for forks.
  void lock() noexcept { mutex_.lock(); }
  void unlock() noexcept { mutex_.unlock(); }

 private:
  struct Extent {
    std::int64_t bytes;
    bool resident;  // backed by memory; otherwise the pages are inaccessible
  };
  using Free = std::map<char*, Extent>;  // by address; adjacent extents differ in `resident`

  std::int64_t whole_pages(std::int64_t bytes) const noexcept { return (bytes + page_ - 1) / page_ * page_; }
  Free::iterator first_fit(std::int64_t bytes) noexcept;
  static std::int64_t resident_bytes(Free::iterator at, std::int64_t bytes) noexcept;
  bool reserve(std::int64_t bytes) noexcept;
  void remove_front(Free::iterator at, std::int64_t bytes) noexcept;
  Free::iterator coalesce(Free::iterator at) noexcept;
  void shrink_cache(std::int64_t bytes) noexcept;
  Free::iterator split_upper(Free::iterator at, std::int64_t bytes);

  SystemCount& counted_;
  const std::int64_t page_, range_;
  std::mutex mutex_;
  Free free_;
  std::int64_t cached_ = 0;
  std::int64_t limit_ = std::int64_t{4} << 30;
};

}  // namespace rill::memory::detail
