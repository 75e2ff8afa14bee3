/// Memory for tensors and graph nodes: 64-byte-aligned blocks, kept and reused.
///
/// Blocks of up to 256 KiB come from free lists of the calling thread, one per size class. Larger ones are
/// whole pages of reserved addresses, shared by all threads: free neighbours coalesce, and a request takes
/// the lowest that are long enough. Under AddressSanitizer every block comes from the system, so that use
/// after free is seen. Debug builds fill new blocks with bytes that read as NaN. Any thread may call any
/// function.
#pragma once

#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)

namespace rill::memory {

/// Bytes of the process in blocks of `allocate`.
struct Stats {
  std::int64_t live_bytes;          ///< handed out and not yet returned
  std::int64_t cached_bytes;        ///< returned and kept for reuse
  std::int64_t system_bytes;        ///< taken from the system: live + cached
  std::int64_t peak_system_bytes;   ///< high-water mark of `system_bytes`
  std::int64_t system_allocations;  ///< times the system gave more memory; steady when steps are alike
};

/// A block of at least `bytes`, 64-byte aligned, uninitialised; throws rill::Error when the system has none.
void* allocate(std::size_t bytes);
/// Returns a block of `allocate(bytes)`; the same `bytes` must be given.
void deallocate(void* block, std::size_t bytes) noexcept;

/// A block for the time that this lives.
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

/// The figures of now, all threads counted.
Stats stats() noexcept;
/// Gives free large blocks and the calling thread's free lists back to the system, and with the GNU C library
/// what else the process has freed.
void trim() noexcept;
/// The most bytes of large blocks kept free (default 4 GiB); what is above is given back at once.
void set_cache_limit(std::int64_t bytes) noexcept;

}  // namespace rill::memory

#pragma GCC visibility pop
