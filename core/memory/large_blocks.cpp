#include <rill/core/memory/large_blocks.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <new>
#include <utility>

namespace rill::memory::detail {
namespace {

/// Reservation size if address space is scarce.
constexpr std::int64_t small_range = std::int64_t{64} << 20;

/// Reserves addresses without memory, or returns null; with MAP_FIXED, replaces the mapping at `start`.
char* map_addresses(char* start, std::int64_t bytes, int flags) noexcept {
  // Without MAP_NORESERVE, so that the kernel checks for enough memory when the pages are made usable.
  void* mapped =
      ::mmap(start, static_cast<std::size_t>(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<char*>(mapped);
}

bool make_usable(char* start, std::int64_t bytes) noexcept {
  return ::mprotect(start, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE) == 0;
}

/// Maps anew instead of using MADV_DONTNEED, which would leave the memory committed (strict overcommit,
/// RLIMIT_DATA) and let huge pages fill it again.
bool return_to_system(char* start, std::int64_t bytes) noexcept {
  return map_addresses(start, bytes, MAP_FIXED) != nullptr;
}

}  // namespace

LargeBlocks::LargeBlocks(SystemCount& counted, std::int64_t range)
    : counted_(counted), page_(::sysconf(_SC_PAGESIZE)), range_(whole_pages(range)) {}

void* LargeBlocks::allocate(std::size_t size) noexcept {
  const std::int64_t bytes = whole_pages(static_cast<std::int64_t>(size));
  std::lock_guard lock(mutex_);
  auto at = first_fit(bytes);
  if (at == free_.end() && reserve(bytes)) at = first_fit(bytes);
  if (at == free_.end()) return nullptr;
  char* block = at->first;
  const std::int64_t resident = resident_bytes(at, bytes);
  if (resident < bytes && !make_usable(block, bytes)) return nullptr;
  remove_front(at, bytes);
  cached_ -= resident;
  if (resident < bytes) counted_.add(bytes - resident);
  return block;
}

void LargeBlocks::deallocate(void* block, std::size_t size) noexcept {
  const std::int64_t bytes = whole_pages(static_cast<std::int64_t>(size));
  std::lock_guard lock(mutex_);
  try {
    coalesce(free_.emplace(static_cast<char*>(block), Extent{bytes, true}).first);
    cached_ += bytes;
  } catch (const std::bad_alloc&) {  // no memory for the map node: the addresses are lost
    if (return_to_system(static_cast<char*>(block), bytes)) counted_.remove(bytes);
  }
  shrink_cache(limit_);
}

void LargeBlocks::trim() noexcept {
  std::lock_guard lock(mutex_);
  shrink_cache(0);
}

void LargeBlocks::set_limit(std::int64_t bytes) noexcept {
  std::lock_guard lock(mutex_);
  limit_ = bytes;
  shrink_cache(limit_);
}

std::int64_t LargeBlocks::cached() noexcept {
  std::lock_guard lock(mutex_);
  return cached_;
}

/// The lowest free extent that, with the extents adjacent above it, has at least `bytes`; end() if none.
LargeBlocks::Free::iterator LargeBlocks::first_fit(std::int64_t bytes) noexcept {
  auto first = free_.begin();
  std::int64_t length = 0;
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    if (at->first != first->first + length) {
      first = at;
      length = 0;
    }
    length += at->second.bytes;
    if (length >= bytes) return first;
  }
  return free_.end();
}

/// The resident bytes among the first `bytes` starting at `at`.
std::int64_t LargeBlocks::resident_bytes(Free::iterator at, std::int64_t bytes) noexcept {
  std::int64_t resident = 0;
  for (; bytes > 0; ++at) {
    if (at->second.resident) resident += std::min(bytes, at->second.bytes);
    bytes -= at->second.bytes;
  }
  return resident;
}

/// Adds an address range of at least `bytes`; false if there are no addresses or not enough memory.
bool LargeBlocks::reserve(std::int64_t bytes) noexcept {
  char* start = nullptr;
  std::int64_t range = 0;
  for (const std::int64_t wanted : {range_, small_range, bytes}) {  // RLIMIT_AS may be low
    range = std::max(wanted, bytes);
    start = map_addresses(nullptr, range, 0);
    if (start) break;
  }
  if (!start) return false;
  try {
    // Tested now, so that no addresses stay reserved for a block that cannot be backed by memory.
    if (make_usable(start, bytes)) {
      coalesce(free_.emplace(start, Extent{range, false}).first);
      return true;
    }
  } catch (const std::bad_alloc&) {  // no memory for the map node
  }
  ::munmap(start, static_cast<std::size_t>(range));
  return false;
}

/// Removes the first `bytes` starting at `at` from the free extents. Allocates nothing, so it cannot fail.
void LargeBlocks::remove_front(Free::iterator at, std::int64_t bytes) noexcept {
  while (bytes > 0) {
    auto node = free_.extract(at++);
    const std::int64_t part = std::min(bytes, node.mapped().bytes);
    bytes -= part;
    if (part == node.mapped().bytes) continue;
    node.key() += part;
    node.mapped().bytes -= part;
    free_.insert(std::move(node));
  }
}

/// Merges a free extent with adjacent ones of equal residency.
LargeBlocks::Free::iterator LargeBlocks::coalesce(Free::iterator at) noexcept {
  const auto merge_next = [&](Free::iterator low) {
    const auto next = std::next(low);
    if (next == free_.end() || low->first + low->second.bytes != next->first) return false;
    if (low->second.resident != next->second.resident) return false;
    low->second.bytes += next->second.bytes;
    free_.erase(next);
    return true;
  };
  merge_next(at);
  if (at == free_.begin()) return at;
  const auto previous = std::prev(at);
  return merge_next(previous) ? previous : at;
}

/// Returns free memory to the system, highest addresses first, until at most `bytes` are cached.
void LargeBlocks::shrink_cache(std::int64_t bytes) noexcept try {
  for (auto at = free_.end(); cached_ > bytes && at != free_.begin();) {
    --at;
    if (!at->second.resident) continue;
    at = split_upper(at, std::min(at->second.bytes, whole_pages(cached_ - bytes)));
    if (!return_to_system(at->first, at->second.bytes)) {
      coalesce(at);
      return;
    }
    cached_ -= at->second.bytes;
    counted_.remove(at->second.bytes);
    at->second.resident = false;
    at = coalesce(at);
  }
} catch (const std::bad_alloc&) {  // no memory for a map node: more stays cached
}

/// Splits off the highest `bytes` of a free extent and returns them.
LargeBlocks::Free::iterator LargeBlocks::split_upper(Free::iterator at, std::int64_t bytes) {
  Extent& lower = at->second;
  if (bytes == lower.bytes) return at;
  const auto upper =
      free_.emplace_hint(std::next(at), at->first + (lower.bytes - bytes), Extent{bytes, lower.resident});
  lower.bytes -= bytes;
  return upper;
}

}  // namespace rill::memory::detail
