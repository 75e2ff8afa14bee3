/// Intrusive reference counting: one pointer, one count inside the object.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#pragma GCC visibility push(default)

namespace rill {

/// Base of everything a Ref may hold. T provides `static void destroy(T*) noexcept`.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void retain() const noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  /// True when the last reference has gone. The only owner needs no atomic read-modify-write.
  bool release() const noexcept {
    if (refs_.load(std::memory_order_acquire) == 1) return true;
    return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  std::uint32_t use_count() const noexcept { return refs_.load(std::memory_order_acquire); }

 private:
  mutable std::atomic<std::uint32_t> refs_{1};
};

/// Owns one reference to a T, or nothing.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) noexcept {}
  /// Takes over the reference that a new object is born with.
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

  /// Gives the reference up without dropping it: the caller owns it and passes it to adopt() in the end.
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
