#include <rill/core/memory.h>

#include <sys/mman.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <rill/core/error.h>

#if defined(__SANITIZE_ADDRESS__)
#define RILL_BYPASS_CACHE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RILL_BYPASS_CACHE 1
#endif
#endif
#ifndef RILL_BYPASS_CACHE
#define RILL_BYPASS_CACHE 0
#endif

namespace rill::memory {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t small_limit = std::size_t{256} << 10;  // above: the shared pool
constexpr std::size_t page = 4096;
constexpr std::int64_t thread_cache_limit = std::int64_t{128} << 20;
constexpr std::size_t classes = 64;

struct SizeClass {
  std::size_t index;
  std::size_t bytes;
};

/// 64, 128, … 512, then four classes a doubling: at most a fifth of a block is waste.
SizeClass size_class(std::size_t bytes) noexcept {
  const std::size_t units = std::max<std::size_t>((bytes + alignment - 1) / alignment, 1);
  if (units <= 8) return {units - 1, units * alignment};
  const int top = std::bit_width(units - 1) - 1;  // 2^top < units <= 2^(top + 1), top >= 3
  const std::size_t quarter = std::size_t{1} << (top - 2);
  const std::size_t step = (units - (std::size_t{1} << top) + quarter - 1) / quarter;  // 1 … 4
  return {8 + static_cast<std::size_t>(top - 3) * 4 + step - 1,
          ((std::size_t{1} << top) + step * quarter) * alignment};
}

std::atomic<std::int64_t> system_bytes{0};
std::atomic<std::int64_t> peak_bytes{0};
std::atomic<std::int64_t> system_allocations{0};

struct FreeBlock {
  FreeBlock* next;
};

/// Large blocks are mapped, so that what is given back is gone.
bool is_mapped(std::size_t bytes) noexcept { return !RILL_BYPASS_CACHE && bytes > small_limit; }

void* ask_system(std::size_t bytes) noexcept {
  if (!is_mapped(bytes)) return std::aligned_alloc(alignment, bytes);
  void* block = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? nullptr : block;
}

void return_to_system(void* block, std::size_t bytes) noexcept {
  if (is_mapped(bytes)) {
    ::munmap(block, bytes);
  } else {
    std::free(block);
  }
  system_bytes.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
}

std::size_t whole_pages(std::size_t bytes) noexcept { return (bytes + page - 1) / page * page; }

/// Large blocks of every thread. A free block serves any request for more than half of it, so that batches of
/// ever other sizes share blocks. Before the system is asked for more, free blocks go back to it, the one
/// that has waited longest first, until all that is held is at most a sixteenth above the most that was ever
/// in use. A block that may only be waiting for its next turn, since no more were freed after it than were
/// ever in use at once, stays until it is a quarter: training steps that are alike ask the system for
/// nothing.
class Pool {
 public:
  /// A block of at least `bytes` that was free, or null.
  void* take(std::size_t bytes) noexcept try {
    std::lock_guard lock(mutex_);
    const auto at = free_.lower_bound(bytes);
    if (at == free_.end() || at->first > 2 * bytes) return nullptr;
    void* block = at->second.block;
    use(block, at->first);
    forget(at);
    return block;
  } catch (...) {  // no memory for the list itself
    return nullptr;
  }

  /// Before a block of `bytes` comes from the system: lets go of free ones, lest there be too much in all.
  void make_room(std::size_t bytes) noexcept {
    std::lock_guard lock(mutex_);
    const std::int64_t use = in_use_ + static_cast<std::int64_t>(bytes), most = std::max(most_in_use_, use);
    const auto too_much = [&](std::int64_t share) { return use + cached_ > most + most / share; };
    while (!free_.empty() && too_much(16)) {
      const auto at = by_age_.begin()->second;
      if (!too_much(4) && freed_ - at->second.when <= most_blocks_) return;
      drop(at);
    }
  }

  /// Notes a new block.
  void add(void* block, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    try {
      use(block, bytes);
    } catch (...) {
      return_to_system(block, bytes);
      throw;
    }
  }

  void give(void* block) noexcept {
    std::lock_guard lock(mutex_);
    const auto known = sizes_.find(block);
    const std::size_t bytes = known->second;
    sizes_.erase(known);
    in_use_ -= static_cast<std::int64_t>(bytes);
    if (RILL_BYPASS_CACHE || static_cast<std::int64_t>(bytes) > limit_) return return_to_system(block, bytes);
    drop_above(limit_ - static_cast<std::int64_t>(bytes));
    try {
      keep(block, bytes);
    } catch (...) {  // no memory for the list itself
      return_to_system(block, bytes);
    }
  }

  void trim() noexcept {
    std::lock_guard lock(mutex_);
    while (!free_.empty()) drop(free_.begin());
    most_in_use_ = in_use_;
    most_blocks_ = sizes_.size();
  }

  void set_limit(std::int64_t bytes) noexcept {
    std::lock_guard lock(mutex_);
    limit_ = bytes;
    drop_above(limit_);
  }

  std::int64_t cached() noexcept {
    std::lock_guard lock(mutex_);
    return cached_;
  }

 private:
  struct Freed {
    void* block;
    std::uint64_t when;
  };
  using Free = std::multimap<std::size_t, Freed>;

  void use(void* block, std::size_t bytes) {
    sizes_.emplace(block, bytes);
    in_use_ += static_cast<std::int64_t>(bytes);
    most_in_use_ = std::max(most_in_use_, in_use_);
    most_blocks_ = std::max(most_blocks_, sizes_.size());
  }
  void keep(void* block, std::size_t bytes) {
    const auto at = free_.emplace(bytes, Freed{block, freed_ + 1});
    try {
      by_age_.emplace(freed_ + 1, at);
    } catch (...) {
      free_.erase(at);
      throw;
    }
    ++freed_;
    cached_ += static_cast<std::int64_t>(bytes);
  }
  void forget(Free::iterator at) noexcept {
    cached_ -= static_cast<std::int64_t>(at->first);
    by_age_.erase(at->second.when);
    free_.erase(at);
  }
  void drop_above(std::int64_t bytes) noexcept {
    while (cached_ > bytes) drop(by_age_.begin()->second);
  }
  void drop(Free::iterator at) noexcept {
    return_to_system(at->second.block, at->first);
    forget(at);
  }

  std::mutex mutex_;
  Free free_;
  std::unordered_map<void*, std::size_t> sizes_;  // of the blocks in use
  std::int64_t cached_ = 0, in_use_ = 0, most_in_use_ = 0;
  std::size_t most_blocks_ = 0;
  std::uint64_t freed_ = 0;
  std::map<std::uint64_t, Free::iterator> by_age_;
  std::int64_t limit_ = std::int64_t{4} << 30;
};

/// Never destroyed: tensors may outlive every other static object.
Pool& pool() noexcept {
  static Pool& instance = *new Pool;
  return instance;
}

class ThreadCache;
std::mutex registry_mutex;
std::vector<ThreadCache*>& registry() noexcept {
  static std::vector<ThreadCache*>& instance = *new std::vector<ThreadCache*>;
  return instance;
}

/// The calling thread's free lists. Only the owner changes them; `cached` is read by stats() of any thread.
class ThreadCache {
 public:
  ThreadCache() {
    std::lock_guard lock(registry_mutex);
    registry().push_back(this);
  }
  ~ThreadCache() {
    drain();
    std::lock_guard lock(registry_mutex);
    std::erase(registry(), this);
  }

  void* take(SizeClass c) noexcept {
    FreeBlock* block = lists_[c.index];
    if (!block) return nullptr;
    lists_[c.index] = block->next;
    add(-static_cast<std::int64_t>(c.bytes));
    return block;
  }

  /// A full cache is emptied: what it held was of sizes no longer asked for.
  void give(void* block, SizeClass c) noexcept {
    if (cached() + static_cast<std::int64_t>(c.bytes) > thread_cache_limit) drain();
    lists_[c.index] = new (block) FreeBlock{lists_[c.index]};
    add(static_cast<std::int64_t>(c.bytes));
  }

  void drain() noexcept {
    for (std::size_t i = 0; i < classes; ++i) {
      while (FreeBlock* block = lists_[i]) {
        lists_[i] = block->next;
        return_to_system(block, bytes_of(i));
      }
    }
    cached_.store(0, std::memory_order_relaxed);
  }

  std::int64_t cached() const noexcept { return cached_.load(std::memory_order_relaxed); }

 private:
  void add(std::int64_t bytes) noexcept { cached_.store(cached() + bytes, std::memory_order_relaxed); }
  static std::size_t bytes_of(std::size_t index) noexcept {
    if (index < 8) return (index + 1) * alignment;
    const std::size_t top = 3 + (index - 8) / 4;
    return ((std::size_t{1} << top) + ((index - 8) % 4 + 1) * (std::size_t{1} << (top - 2))) * alignment;
  }

  std::array<FreeBlock*, classes> lists_{};
  std::atomic<std::int64_t> cached_{0};
};

/// Null before the thread's first block and after the thread's end.
thread_local ThreadCache* current = nullptr;
thread_local bool ended = false;

struct ThreadCacheOwner {
  ThreadCacheOwner() { current = new ThreadCache; }
  ~ThreadCacheOwner() {
    delete std::exchange(current, nullptr);
    ended = true;
  }
};

[[gnu::noinline]] ThreadCache* start_cache() noexcept {
  if (ended) return nullptr;
  thread_local ThreadCacheOwner owner;
  return current;
}

ThreadCache* thread_cache() noexcept { return current ? current : start_cache(); }

[[gnu::noinline]] void* take_from_system(std::size_t bytes) {
  void* block = ask_system(bytes);
  if (!block) {
    trim();
    block = ask_system(bytes);
  }
  check(block != nullptr,
        "memory: the system has no block of {} bytes ({} bytes are in use); use smaller sizes or batches",
        bytes, system_bytes.load());
  system_allocations.fetch_add(1, std::memory_order_relaxed);
  const std::int64_t now =
      system_bytes.fetch_add(static_cast<std::int64_t>(bytes)) + static_cast<std::int64_t>(bytes);
  std::int64_t peak = peak_bytes.load();
  while (now > peak && !peak_bytes.compare_exchange_weak(peak, now)) {
  }
  return block;
}

[[gnu::noinline]] void* find_large(std::size_t bytes) {
  check(bytes <= PTRDIFF_MAX - page, "memory: a block of {} bytes cannot exist", bytes);
  const std::size_t rounded = whole_pages(bytes);
  void* block = RILL_BYPASS_CACHE ? nullptr : pool().take(rounded);
  if (block) return block;
  pool().make_room(rounded);
  block = take_from_system(rounded);
  pool().add(block, rounded);
  return block;
}

void* find_block(std::size_t bytes) {
  if (bytes > small_limit) return find_large(bytes);
  const SizeClass c = size_class(bytes);
  ThreadCache* cache = RILL_BYPASS_CACHE ? nullptr : thread_cache();
  void* block = cache ? cache->take(c) : nullptr;
  return block ? block : take_from_system(c.bytes);
}

}  // namespace

void* allocate(std::size_t bytes) {
  void* block = find_block(bytes);
#ifndef NDEBUG
  std::memset(block, 0xff, bytes);  // reads as NaN
#endif
  return block;
}

void deallocate(void* block, std::size_t bytes) noexcept {
  if (!block) return;
  if (bytes > small_limit) return pool().give(block);
  const SizeClass c = size_class(bytes);
  ThreadCache* cache = RILL_BYPASS_CACHE ? nullptr : thread_cache();
  cache ? cache->give(block, c) : return_to_system(block, c.bytes);
}

Stats stats() noexcept {
  std::int64_t cached = pool().cached();
  {
    std::lock_guard lock(registry_mutex);
    for (const ThreadCache* cache : registry()) cached += cache->cached();
  }
  const std::int64_t held = system_bytes.load();
  return {held - cached, cached, held, peak_bytes.load(), system_allocations.load()};
}

void trim() noexcept {
  pool().trim();
  if (current) current->drain();
#if defined(__GLIBC__)
  malloc_trim(0);  // or small blocks stay with the C library
#endif
}

void set_cache_limit(std::int64_t bytes) noexcept { pool().set_limit(std::max<std::int64_t>(bytes, 0)); }

}  // namespace rill::memory
