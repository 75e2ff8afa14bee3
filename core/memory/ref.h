/// Intrusive reference counting.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#pragma GCC visibility push(default)

namespace rill {

/// Base class of reference-counted objects. A derived T provides `static void destroy(T*) noexcept`.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void retain() const noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  /// Drops a reference; true if it was the last. A sole owner needs no atomic read-modify-write.
  bool release() const noexcept {
    if (refs_.load(std::memory_order_acquire) == 1) return true;
    return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  std::uint32_t use_count() const noexcept { return refs_.load(std::memory_order_acquire); }

 private:
  mutable std::atomic<std::uint32_t> refs_{1};
};

/// A smart pointer that owns one reference to a T, or null.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) noexcept {}
  /// Takes ownership of an existing reference, such as the initial one of a new object.
  static Ref adopt(T* object) noexcept {
    Ref r;
    r.object_ = object;
    return r;
  }
  /// Adds a reference.
  static Ref share(T* object) noexcept {
    if (object) object->retain();
    return adopt(object);
  }
  Ref(const Ref& other) noexcept : object_(other.object_) {
    if (object_) object_->retain();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ && object_->release()) T::destroy(object_);
  }

  /// Transfers the reference to the caller, who must pass it to adopt().
  [[nodiscard]] T* release() noexcept { return std::exchange(object_, nullptr); }

  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.object_ == b.object_; }

 private:
  T* object_ = nullptr;
};

}  // namespace rill

#pragma GCC visibility pop
