/// A hash of data: FNV-1a of 64 bits.
#pragma once

#include <cstdint>
#include <string_view>

namespace translator {

class Fingerprint {
 public:
  void add(std::uint64_t value) noexcept { hash_ = (hash_ ^ value) * 1099511628211u; }
  void add(std::string_view text) noexcept {
    for (char c : text) add(std::uint64_t{static_cast<unsigned char>(c)});
  }
  /// The hash of all that was added, in order.
  std::uint64_t value() const noexcept { return hash_; }

 private:
  std::uint64_t hash_ = 1469598103934665603u;
};

}  // namespace translator
