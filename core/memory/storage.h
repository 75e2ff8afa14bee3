/// The reference-counted memory of one or more tensors, with a version counter that every change bumps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include <rill/core/memory.h>
#include <rill/core/memory/ref.h>

#pragma GCC visibility push(default)

namespace rill {

/// Data derived from the contents of a storage, such as a packed weight, and cached until they change.
class StorageCache {
 public:
  virtual ~StorageCache() = default;
  /// Invalidates the cached data; called before the contents change.
  virtual void drop() noexcept = 0;
};

/// Header of a block whose data follow it directly, aligned to 64 bytes.
class alignas(64) Storage : public RefCounted {
 public:
  static Ref<Storage> create(std::size_t bytes) {
    void* block = memory::allocate(sizeof(Storage) + bytes);
    return Ref<Storage>::adopt(new (block) Storage(bytes));
  }
  static void destroy(Storage* storage) noexcept {
    const std::size_t bytes = sizeof(Storage) + storage->bytes_;
    delete storage->cache_.load(std::memory_order_relaxed);
    storage->~Storage();
    memory::deallocate(storage, bytes);
  }

  std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this) + sizeof(Storage); }
  std::size_t bytes() const noexcept { return bytes_; }
  /// Number of mutable accesses.
  std::uint32_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  void bump_version() noexcept {
    version_.store(version() + 1, std::memory_order_relaxed);
    if (StorageCache* present = cache_.load(std::memory_order_acquire)) present->drop();
  }

  /// The cache, owned by the storage; null if none. Callers synchronise concurrent changes.
  std::atomic<StorageCache*>& cache() noexcept { return cache_; }

 private:
  explicit Storage(std::size_t bytes) noexcept : bytes_(bytes) {}
  ~Storage() = default;

  std::atomic<std::uint32_t> version_{0};
  std::size_t bytes_;
  std::atomic<StorageCache*> cache_{nullptr};
};
static_assert(sizeof(Storage) == 64);

}  // namespace rill

#pragma GCC visibility pop
