/// Memory for tensors and graph nodes: a caching allocator of 64-byte-aligned blocks.
///
/// Blocks of up to 256 KiB come from free lists of the calling thread, one per size class. Larger ones are
/// whole pages of a reserved address range, shared by all threads: adjacent free blocks are merged, and an
/// allocation takes the lowest addresses that fit. Under AddressSanitizer every block comes from the system,
/// so that use after free is detected. Debug builds fill new blocks with NaN. All functions are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)

namespace rill::memory {

/// Bytes in blocks of `allocate`, of the whole process.
struct Stats {
  std::int64_t live_bytes;          ///< allocated and not yet freed
  std::int64_t cached_bytes;        ///< freed and kept for reuse
  std::int64_t system_bytes;        ///< taken from the system: live + cached
  std::int64_t peak_system_bytes;   ///< high-water mark of `system_bytes`
  std::int64_t system_allocations;  ///< requests to the system; constant in a steady state
};

/// A block of at least `bytes`, 64-byte aligned, uninitialised; throws rill::Error when the system has none.
void* allocate(std::size_t bytes);
/// Returns a block of `allocate(bytes)`; the same `bytes` must be given.
void deallocate(void* block, std::size_t bytes) noexcept;

/// A block that is freed by the destructor.
class Block {
 public:
  /// Allocates; throws rill::Error when the system has no memory.
  explicit Block(std::size_t bytes) : bytes_(bytes), data_(allocate(bytes)) {}
  ~Block() { deallocate(data_, bytes_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void* data() const noexcept { return data_; }  ///< 64-byte aligned

 private:
  std::size_t bytes_;
  void* data_;
};

/// Current statistics, over all threads.
Stats stats() noexcept;
/// Returns free large blocks and the calling thread's free lists to the system; with the GNU C library, also
/// the free memory of malloc.
void trim() noexcept;
/// Limit on the free bytes kept in large blocks (default 4 GiB); memory beyond it is returned to the system
/// at once.
void set_cache_limit(std::int64_t bytes) noexcept;

}  // namespace rill::memory

#pragma GCC visibility pop
