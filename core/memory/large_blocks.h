/// Large blocks out of a range of addresses; internal to rill::memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include <rill/core/memory/system_count.h>

namespace rill::memory::detail {

/// Whole pages out of a reserved range of addresses. Free neighbours are one, and a request takes the lowest
/// addresses that are long enough; so blocks crowd at the low end, and what is held stays near the most that
/// was ever in use: a few per cent above in trainings, a quarter at most. (Address-ordered first fit: Wilson,
/// Johnstone, Neely, Boles, "Dynamic Storage Allocation: A Survey and Critical Review", 1995.)
///
/// Free memory goes back to the system, the highest addresses first, when it is above the limit, and when a
/// request takes fresh memory while what is held is a quarter above the most that was ever in use.
class LargeBlocks {
 public:
  /// Counts in `counted` what the system gives. Addresses are reserved `range` bytes at a time, less where
  /// they are short, and never returned: an object that goes out of use should be trimmed first.
  explicit LargeBlocks(SystemCount& counted, std::int64_t range = std::int64_t{64} << 30);

  /// A block of at least `bytes`, which are more than 0, or null when the system has none.
  void* take(std::size_t bytes) noexcept;
  /// Returns a block of `take(bytes)`.
  void give(void* block, std::size_t bytes) noexcept;

  /// Gives all that is free back to the system and forgets how much was ever in use.
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
  std::int64_t cached_ = 0, in_use_ = 0, most_in_use_ = 0;
  std::int64_t limit_ = std::int64_t{4} << 30;
};

}  // namespace rill::memory::detail
