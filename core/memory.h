/// Caching allocator for tensors and graph nodes; blocks are aligned to 64 bytes.
///
/// Blocks of up to 256 KiB come from per-thread free lists, one per size class. Larger blocks are whole pages
/// of a reserved address range shared by all threads: adjacent free blocks coalesce, and allocation is
/// address-ordered first fit. Under AddressSanitizer every block comes from the system, so that use after
/// free is detected. Debug builds fill new blocks with bytes that read as NaN. All functions are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)

namespace rill::memory {

/// Process-wide statistics of the allocator.
struct Stats {
  std::int64_t live_bytes;          ///< allocated and not yet freed
  std::int64_t cached_bytes;        ///< freed and kept for reuse
  std::int64_t system_bytes;        ///< obtained from the system: live + cached
  std::int64_t peak_system_bytes;   ///< high-water mark of `system_bytes`
  std::int64_t system_allocations;  ///< number of system allocations; constant in a steady training loop
};

/// An uninitialised block of at least `bytes`, aligned to 64 bytes; throws rill::Error if memory is exhausted.
void* allocate(std::size_t bytes);
/// Frees a block returned by `allocate(bytes)`, with the same `bytes`; null is ignored.
void deallocate(void* block, std::size_t bytes) noexcept;

/// Owns a block; frees it on destruction.
class Block {
 public:
  /// Allocates; throws rill::Error if memory is exhausted.
  explicit Block(std::size_t bytes) : bytes_(bytes), data_(allocate(bytes)) {}
  ~Block() { deallocate(data_, bytes_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void* data() const noexcept { return data_; }  ///< 64-byte aligned

 private:
  std::size_t bytes_;
  void* data_;
};

/// The current statistics over all threads.
Stats stats() noexcept;
/// Returns free large blocks and the calling thread's free lists to the system; with glibc, calls malloc_trim.
void trim() noexcept;
/// Limits the bytes of free large blocks kept for reuse (default 4 GiB); the excess is returned to the system.
void set_cache_limit(std::int64_t bytes) noexcept;

}  // namespace rill::memory

#pragma GCC visibility pop
