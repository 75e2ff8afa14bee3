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

/// Reservation size if the address space is limited.
constexpr std::int64_t few_addresses = std::int64_t{64} << 20;

/// Reserves addresses without memory, or returns null; with MAP_FIXED, replaces the mapping at `start`.
char* map_addresses(char* start, std::int64_t bytes, int flags) noexcept {
  // Not MAP_NORESERVE, which would disable the system's check that it can back the memory later.
  void* mapped =
      ::mmap(start, static_cast<std::size_t>(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<char*>(mapped);
}

bool make_usable(char* start, std::int64_t bytes) noexcept {
  return ::mprotect(start, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE) == 0;
}

/// A new mapping rather than MADV_DONTNEED: it also releases the commitment (strict overcommit, RLIMIT_DATA),
/// and no huge page fills the gap.
bool return_to_system(char* start, std::int64_t bytes) noexcept {
  return map_addresses(start, bytes, MAP_FIXED) != nullptr;
}

}  // namespace

LargeBlocks::LargeBlocks(SystemCount& counted, std::int64_t range)
    : counted_(counted), page_(::sysconf(_SC_PAGESIZE)), range_(whole_pages(range)) {}

void* LargeBlocks::take(std::size_t size) noexcept {
  const std::int64_t bytes = whole_pages(static_cast<std::int64_t>(size));
  std::lock_guard lock(mutex_);
  auto at = first_fit(bytes);
  if (at == free_.end() && reserve(bytes)) at = first_fit(bytes);
  if (at == free_.end()) return nullptr;
  char* block = at->first;
  const std::int64_t resident = resident_bytes(at, bytes);
  if (resident < bytes && !make_usable(block, bytes)) return nullptr;
  cut(at, bytes);
  cached_ -= resident;
  if (resident < bytes) counted_.took(bytes - resident);
  return block;
}

void LargeBlocks::give(void* block, std::size_t size) noexcept {
  const std::int64_t bytes = whole_pages(static_cast<std::int64_t>(size));
  std::lock_guard lock(mutex_);
  try {
    join(free_.emplace(static_cast<char*>(block), Extent{bytes, true}).first);
    cached_ += bytes;
  } catch (const std::bad_alloc&) {  // no memory for the list: the addresses are lost
    if (return_to_system(static_cast<char*>(block), bytes)) counted_.gave_back(bytes);
  }
  keep_at_most(limit_);
}

void LargeBlocks::trim() noexcept {
  std::lock_guard lock(mutex_);
  keep_at_most(0);
}

void LargeBlocks::set_limit(std::int64_t bytes) noexcept {
  std::lock_guard lock(mutex_);
  limit_ = bytes;
  keep_at_most(limit_);
}

std::int64_t LargeBlocks::cached() noexcept {
  std::lock_guard lock(mutex_);
  return cached_;
}

/// The lowest free extent that provides `bytes` together with the adjacent extents above it; or the end.
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

/// The resident bytes among the first `bytes` from `at` on.
std::int64_t LargeBlocks::resident_bytes(Free::iterator at, std::int64_t bytes) noexcept {
  std::int64_t resident = 0;
  for (; bytes > 0; ++at) {
    if (at->second.resident) resident += std::min(bytes, at->second.bytes);
    bytes -= at->second.bytes;
  }
  return resident;
}

/// Reserves a range of at least `bytes`; false if there is no address space or the system has no such block.
bool LargeBlocks::reserve(std::int64_t bytes) noexcept {
  char* start = nullptr;
  std::int64_t range = 0;
  for (const std::int64_t wanted : {range_, few_addresses, bytes}) {  // the address space may be limited
    range = std::max(wanted, bytes);
    start = map_addresses(nullptr, range, 0);
    if (start) break;
  }
  if (!start) return false;
  try {
    // Committed at once, so that no addresses stay reserved for a block that cannot exist.
    if (make_usable(start, bytes)) {
      join(free_.emplace(start, Extent{range, false}).first);
      return true;
    }
  } catch (const std::bad_alloc&) {  // no memory for the list
  }
  ::munmap(start, static_cast<std::size_t>(range));
  return false;
}

/// Removes the first `bytes` from `at` on from the free extents. Allocates nothing, so it cannot fail.
void LargeBlocks::cut(Free::iterator at, std::int64_t bytes) noexcept {
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

/// Merges a free extent with adjacent extents of the same residency.
LargeBlocks::Free::iterator LargeBlocks::join(Free::iterator at) noexcept {
  const auto swallow_next = [&](Free::iterator low) {
    const auto next = std::next(low);
    if (next == free_.end() || low->first + low->second.bytes != next->first) return false;
    if (low->second.resident != next->second.resident) return false;
    low->second.bytes += next->second.bytes;
    free_.erase(next);
    return true;
  };
  swallow_next(at);
  if (at == free_.begin()) return at;
  const auto previous = std::prev(at);
  return swallow_next(previous) ? previous : at;
}

/// Returns free memory to the system, highest addresses first, until at most `bytes` are kept.
void LargeBlocks::keep_at_most(std::int64_t bytes) noexcept try {
  for (auto at = free_.end(); cached_ > bytes && at != free_.begin();) {
    --at;
    if (!at->second.resident) continue;
    at = upper_part(at, std::min(at->second.bytes, whole_pages(cached_ - bytes)));
    if (!return_to_system(at->first, at->second.bytes)) {
      join(at);
      return;
    }
    cached_ -= at->second.bytes;
    counted_.gave_back(at->second.bytes);
    at->second.resident = false;
    at = join(at);
  }
} catch (const std::bad_alloc&) {  // no memory for the list: more is kept
}

/// Splits the highest `bytes` of a free extent off into their own extent.
LargeBlocks::Free::iterator LargeBlocks::upper_part(Free::iterator at, std::int64_t bytes) {
  Extent& lower = at->second;
  if (bytes == lower.bytes) return at;
  const auto upper =
      free_.emplace_hint(std::next(at), at->first + (lower.bytes - bytes), Extent{bytes, lower.resident});
  lower.bytes -= bytes;
  return upper;
}

}  // namespace rill::memory::detail
