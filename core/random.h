/// Random numbers that are identical across compilers, processors and thread counts.
///
/// The generator is counter-based (Philox4x32-10; Salmon et al., "Parallel random numbers: as easy as 1, 2,
/// 3", SC 2011): draw i is a function of (seed, stream, i), so threads share no state and any part of a
/// sequence can be computed independently.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace rill {

/// Philox4x32-10: maps a 128-bit counter and a 64-bit key to 128 random bits.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) noexcept;

/// The complete state of an Rng, for saving and resuming it.
struct RngState {
  std::uint64_t seed = 0;     ///< key of the generator
  std::uint64_t stream = 0;   ///< index of an independent sequence of the seed
  std::uint64_t counter = 0;  ///< number of 64-bit draws made

  /// Equal states produce equal sequences.
  friend bool operator==(const RngState&, const RngState&) = default;
};

/// A random number generator. A copy continues with the same draws as the original.
class Rng {
 public:
  /// Starts at the beginning of a stream of `seed`.
  explicit Rng(std::uint64_t seed, std::uint64_t stream = 0) noexcept : state_{seed, stream, 0} {}

  /// 64 random bits; one draw.
  std::uint64_t next() noexcept;

  /// Uniform in [0, 1), a multiple of 2^-53; one draw.
  double uniform() noexcept;

  /// Normal with mean 0 and standard deviation 1 (Box-Muller); two draws.
  double normal() noexcept;

  /// True with probability p (never for p <= 0, always for p >= 1); one draw.
  bool bernoulli(double p) noexcept { return uniform() < p; }

  /// Uniform in 0..n-1, unbiased; one draw, rarely more. Throws Error if n is 0.
  std::uint64_t below(std::uint64_t n);

  /// A new generator with seed and stream drawn from this one; two draws.
  Rng split() noexcept;

  /// A random permutation of 0..n-1. Throws Error if n is negative.
  std::vector<std::int64_t> permutation(std::int64_t n);

  /// Shuffles a random-access range uniformly (Fisher-Yates).
  template <class Range>
  void shuffle(Range& range) {
    for (std::size_t i = range.size(); i > 1; --i) {
      using std::swap;
      swap(range[i - 1], range[static_cast<std::size_t>(below(i))]);
    }
  }

  /// Fills to[0..n) uniformly from [lo, hi); n draws. Throws Error unless lo <= hi and hi - lo is finite.
  template <class T>
  void fill_uniform(T* to, std::int64_t n, double lo, double hi);

  /// Fills to[0..n) with mean + std · normal(); 2n draws. Throws Error unless 0 <= std and both are finite.
  template <class T>
  void fill_normal(T* to, std::int64_t n, double mean, double std);

  /// The current state, for set_state().
  const RngState& state() const noexcept { return state_; }
  /// Continues from a saved state.
  void set_state(const RngState& state) noexcept {
    state_ = state;
    block_ = no_block;
  }

 private:
  static constexpr std::uint64_t no_block = ~std::uint64_t{0};

  RngState state_;
  std::uint64_t block_ = no_block;  // index of the pair of draws cached in `draws_`
  std::array<std::uint64_t, 2> draws_{};
};

/// Writes elements [begin, end) of a dropout mask: `scale` with probability `keep_probability`, else 0.
///
/// Element i depends only on (seed, stream, call, i), so ranges may be computed by any thread in any order.
/// The probability is rounded to a multiple of 2^-32. `begin` must not be negative.
template <class T>
[[gnu::visibility("default")]] void bernoulli_mask(std::uint64_t seed, std::uint64_t stream,
                                                   std::uint64_t call, std::int64_t begin, std::int64_t end,
                                                   double keep_probability, T scale, T* out) noexcept;

}  // namespace rill

#pragma GCC visibility pop
