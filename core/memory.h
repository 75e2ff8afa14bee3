/// Caching allocator for tensors and graph nodes; all blocks are 64-byte aligned.
///
/// Blocks of up to 256 KiB come from per-thread free lists, one per size class. Larger ones are page runs in
/// a reserved address range shared by all threads: free neighbours coalesce, and a request takes the lowest
/// free run that fits. Under AddressSanitizer every block comes from the system, so that use after free is
/// detected. Debug builds fill new blocks with NaN bit patterns. All functions are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)

namespace rill::memory {

/// Process-wide counters of the memory behind `allocate`.
struct Stats {
  std::int64_t live_bytes;          ///< allocated and not yet deallocated
  std::int64_t cached_bytes;        ///< deallocated and cached for reuse
  std::int64_t system_bytes;        ///< obtained from the system: live + cached
  std::int64_t peak_system_bytes;   ///< high-water mark of `system_bytes`
  std::int64_t system_allocations;  ///< requests to the system; constant once steps repeat
};

/// Returns at least `bytes` of uninitialised, 64-byte-aligned memory; throws rill::Error when out of memory.
void* allocate(std::size_t bytes);
/// Frees a block from `allocate(bytes)`, with the same `bytes`; ignores null.
void deallocate(void* block, std::size_t bytes) noexcept;

/// Owns a block; RAII over allocate and deallocate.
class Block {
 public:
  /// Allocates `bytes`; throws rill::Error when out of memory.
  explicit Block(std::size_t bytes) : bytes_(bytes), data_(allocate(bytes)) {}
  ~Block() { deallocate(data_, bytes_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void* data() const noexcept { return data_; }  ///< 64-byte aligned

 private:
  std::size_t bytes_;
  void* data_;
};

/// The current counters, summed over all threads.
Stats stats() noexcept;
/// Returns free large blocks and the calling thread's free lists to the system; with glibc also calls
/// malloc_trim.
void trim() noexcept;
/// Sets how many bytes of free large blocks are cached (default 4 GiB). Any excess is released at once.
void set_cache_limit(std::int64_t bytes) noexcept;

}  // namespace rill::memory

#pragma GCC visibility pop
