#include <rill/core/memory.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include <rill/core/error.h>
#include <rill/core/memory/large_blocks.h>
#include <rill/core/parallel/fork.h>

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
constexpr std::size_t small_limit = std::size_t{256} << 10;  // blocks above it are large
constexpr std::int64_t thread_cache_limit = std::int64_t{128} << 20;
constexpr std::size_t classes = 64;

struct SizeClass {
  std::size_t index;
  std::size_t bytes;
};

/// 64, 128, … 512 bytes, then four classes per doubling: at most a fifth of a block is wasted.
SizeClass size_class(std::size_t bytes) noexcept {
  const std::size_t units = std::max<std::size_t>((bytes + alignment - 1) / alignment, 1);
  if (units <= 8) return {units - 1, units * alignment};
  const int top = std::bit_width(units - 1) - 1;  // 2^top < units <= 2^(top + 1), top >= 3
  const std::size_t quarter = std::size_t{1} << (top - 2);
  const std::size_t step = (units - (std::size_t{1} << top) + quarter - 1) / quarter;  // 1 … 4
  return {8 + static_cast<std::size_t>(top - 3) * 4 + step - 1,
          ((std::size_t{1} << top) + step * quarter) * alignment};
}

constinit detail::SystemCount counted;

/// Never destroyed, since tensors may outlive every other static object.
detail::LargeBlocks& large_blocks() noexcept {
  static detail::LargeBlocks& instance = *new detail::LargeBlocks(counted);
  return instance;
}

struct FreeBlock {
  FreeBlock* next;
};

void* allocate_from_system(std::size_t bytes) noexcept {
  void* block = std::aligned_alloc(alignment, bytes);
  if (block) counted.add(static_cast<std::int64_t>(bytes));
  return block;
}

void return_to_system(void* block, std::size_t bytes) noexcept {
  std::free(block);
  counted.remove(static_cast<std::int64_t>(bytes));
}

#if RILL_BYPASS_CACHE
std::size_t whole_units(std::size_t bytes) noexcept {
  return (bytes + alignment - 1) / alignment * alignment;
}
void* allocate_large(std::size_t bytes) noexcept { return allocate_from_system(whole_units(bytes)); }
void deallocate_large(void* block, std::size_t bytes) noexcept {
  return_to_system(block, whole_units(bytes));
}
#else
void* allocate_large(std::size_t bytes) noexcept { return large_blocks().allocate(bytes); }
void deallocate_large(void* block, std::size_t bytes) noexcept { large_blocks().deallocate(block, bytes); }
#endif

class ThreadCache;
constinit std::mutex registry_mutex;
std::vector<ThreadCache*>& registry() noexcept {
  static std::vector<ThreadCache*>& instance = *new std::vector<ThreadCache*>;
  return instance;
}

/// All locks of this file. After a fork, the caches of threads that the child does not have are lost to it
/// and still count as cached.
struct Locks {
  void lock() noexcept {
    registry_mutex.lock();
    large_blocks().lock();
  }
  void unlock() noexcept {
    large_blocks().unlock();
    registry_mutex.unlock();
  }
};
constinit Locks locks;
[[maybe_unused]] const bool fork_handlers_registered = rill::detail::lock_across_forks<locks>();

/// Free lists of one thread. Only the owner modifies them; stats() reads `cached` from any thread.
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

  void* pop(SizeClass c) noexcept {
    FreeBlock* block = lists_[c.index];
    if (!block) return nullptr;
    lists_[c.index] = block->next;
    add(-static_cast<std::int64_t>(c.bytes));
    return block;
  }

  /// If the cache is full, returns the older half of each list to the system.
  void push(void* block, SizeClass c) noexcept {
    if (cached() + static_cast<std::int64_t>(c.bytes) > thread_cache_limit) halve();
    lists_[c.index] = new (block) FreeBlock{lists_[c.index]};
    add(static_cast<std::int64_t>(c.bytes));
  }

  void drain() noexcept {
    for (std::size_t i = 0; i < classes; ++i) free_tail(lists_[i], bytes_of(i));
  }

  std::int64_t cached() const noexcept { return cached_.load(std::memory_order_relaxed); }

 private:
  void halve() noexcept {
    for (std::size_t i = 0; i < classes; ++i) {
      FreeBlock** middle = &lists_[i];
      for (FreeBlock* at = *middle; at; at = at->next ? at->next->next : nullptr) middle = &(*middle)->next;
      free_tail(*middle, bytes_of(i));
    }
  }
  /// Returns `tail` and the older blocks after it to the system.
  void free_tail(FreeBlock*& tail, std::size_t bytes) noexcept {
    while (FreeBlock* block = tail) {
      tail = block->next;
      return_to_system(block, bytes);
      add(-static_cast<std::int64_t>(bytes));
    }
  }
  void add(std::int64_t bytes) noexcept { cached_.store(cached() + bytes, std::memory_order_relaxed); }
  static std::size_t bytes_of(std::size_t index) noexcept {
    if (index < 8) return (index + 1) * alignment;
    const std::size_t top = 3 + (index - 8) / 4;
    return ((std::size_t{1} << top) + ((index - 8) % 4 + 1) * (std::size_t{1} << (top - 2))) * alignment;
  }

  std::array<FreeBlock*, classes> lists_{};
  std::atomic<std::int64_t> cached_{0};
};

/// Null before the thread's first allocation and after its caches are destroyed.
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

/// Calls `allocate`, which returns null on failure; retries once after trim(), then throws.
[[gnu::noinline]] void* allocate_or_throw(void* (*allocate)(std::size_t), std::size_t bytes) {
  void* block = allocate(bytes);
  if (!block) {
    trim();
    block = allocate(bytes);
  }
  check(block != nullptr,
        "memory: cannot allocate {} bytes ({} bytes are in use); use smaller sizes or batches", bytes,
        counted.bytes());
  return block;
}

[[gnu::noinline]] void* large_block(std::size_t bytes) {
  check(bytes <= PTRDIFF_MAX - small_limit, "memory: {} bytes exceed the address space", bytes);
  return allocate_or_throw(allocate_large, bytes);
}

void* uninitialised_block(std::size_t bytes) {
  if (bytes > small_limit) return large_block(bytes);
  const SizeClass c = size_class(bytes);
  ThreadCache* cache = RILL_BYPASS_CACHE ? nullptr : thread_cache();
  void* block = cache ? cache->pop(c) : nullptr;
  return block ? block : allocate_or_throw(allocate_from_system, c.bytes);
}

}  // namespace

void* allocate(std::size_t bytes) {
  void* block = uninitialised_block(bytes);
#ifndef NDEBUG
  std::memset(block, 0xff, bytes);  // reads as NaN
#endif
  return block;
}

void deallocate(void* block, std::size_t bytes) noexcept {
  if (!block) return;
  if (bytes > small_limit) return deallocate_large(block, bytes);
  const SizeClass c = size_class(bytes);
  ThreadCache* cache = RILL_BYPASS_CACHE ? nullptr : thread_cache();
  cache ? cache->push(block, c) : return_to_system(block, c.bytes);
}

Stats stats() noexcept {
  std::int64_t cached = large_blocks().cached();
  {
    std::lock_guard lock(registry_mutex);
    for (const ThreadCache* cache : registry()) cached += cache->cached();
  }
  const std::int64_t held = counted.bytes();
  return {held - cached, cached, held, counted.peak(), counted.allocations()};
}

void trim() noexcept {
  large_blocks().trim();
  if (current) current->drain();
#if defined(__GLIBC__)
  malloc_trim(0);  // otherwise glibc keeps the freed small blocks
#endif
}

void set_cache_limit(std::int64_t bytes) noexcept {
  large_blocks().set_limit(std::max<std::int64_t>(bytes, 0));
}

}  // namespace rill::memory
