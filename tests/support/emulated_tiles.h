/// The AMX tiles that core/gemm/amx_product.h needs, emulated bit for bit in plain C++, for tests on any
/// machine and under sanitizers.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace rill::test {

class EmulatedTiles {
 public:
  EmulatedTiles() { tiles() = {}; }

  template <int tile>
  static void load(const void* from, std::int64_t row_bytes) {
    for (std::int64_t i = 0; i < side; ++i)
      std::memcpy(row(tile, i), static_cast<const char*>(from) + i * row_bytes, side * sizeof(std::uint32_t));
  }
  template <int tile>
  static void store(void* to, std::int64_t row_bytes) {
    for (std::int64_t i = 0; i < side; ++i)
      std::memcpy(static_cast<char*>(to) + i * row_bytes, row(tile, i), side * sizeof(std::uint32_t));
  }
  template <int tile>
  static void zero() {
    tiles()[tile] = {};
  }
  /// Accumulates the lower and upper halves of the pairs separately over the depth, as the processor does.
  template <int to, int left, int right>
  static void multiply_add() {
    for (std::int64_t i = 0; i < side; ++i) {
      for (std::int64_t j = 0; j < side; ++j) {
        float lower = 0;
        float upper = 0;
        for (std::int64_t p = 0; p < side; ++p) {
          const std::uint32_t x = row(left, i)[p];
          const std::uint32_t y = row(right, p)[j];
          lower = fused_multiply_add(lower, x << 16, y << 16);
          upper = fused_multiply_add(upper, x & 0xffff0000U, y & 0xffff0000U);
        }
        std::uint32_t& sum = row(to, i)[j];
        sum = std::bit_cast<std::uint32_t>(flushed(to_float(sum) + flushed(lower + upper)));
      }
    }
  }

 private:
  static constexpr std::int64_t side = 16;
  using Tile = std::array<std::uint32_t, side * side>;

  static std::array<Tile, 8>& tiles() {
    thread_local std::array<Tile, 8> all{};
    return all;
  }
  static std::uint32_t* row(int tile, std::int64_t i) {
    return tiles()[static_cast<std::size_t>(tile)].data() + i * side;
  }
  /// sum + x · y. The product is exact, and in float64 the rounding of the sum is that of one step.
  static float fused_multiply_add(float sum, std::uint32_t x, std::uint32_t y) {
    const double product = static_cast<double>(flushed(to_float(x))) * flushed(to_float(y));
    return flushed(static_cast<float>(sum + product));
  }
  static float flushed(float x) { return std::fabs(x) < 0x1p-126F ? 0 * x : x; }
  static float to_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
};

}  // namespace rill::test
