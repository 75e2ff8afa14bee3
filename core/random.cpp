#include <rill/core/random.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include <rill/core/error.h>
#include <rill/core/kernels/simd.h>

// Compiled with -ffp-contract=off: a fused multiply-add rounds once instead of twice, so results would differ
// between compilers and processors. For the same reason log and cos do not come from the C library.

namespace rill {
namespace {

struct PhiloxBlock {
  std::uint32_t a, b, c, d;
};

RILL_INLINE PhiloxBlock philox_block(PhiloxBlock x, std::uint32_t key0, std::uint32_t key1) noexcept {
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = std::uint64_t{0xd2511f53} * x.a;
    const std::uint64_t q = std::uint64_t{0xcd9e8d57} * x.c;
    x = {static_cast<std::uint32_t>(q >> 32) ^ x.b ^ key0, static_cast<std::uint32_t>(q),
         static_cast<std::uint32_t>(p >> 32) ^ x.d ^ key1, static_cast<std::uint32_t>(p)};
    key0 += 0x9e3779b9;
    key1 += 0xbb67ae85;
  }
  return x;
}

RILL_INLINE constexpr std::uint32_t low(std::uint64_t x) noexcept { return static_cast<std::uint32_t>(x); }
RILL_INLINE constexpr std::uint32_t high(std::uint64_t x) noexcept {
  return static_cast<std::uint32_t>(x >> 32);
}

constexpr std::uint64_t join(std::uint32_t lower, std::uint32_t upper) noexcept {
  return std::uint64_t{upper} << 32 | lower;
}

// The upper 53 bits of a draw, exact as a double in [0, 2^53).
RILL_INLINE double upper_bits(std::uint32_t lower, std::uint32_t upper) noexcept {
  return static_cast<double>(upper) * 0x1p21 + static_cast<double>(lower >> 11);
}

// -ln u for u in (0, 1]: u = m 2^e, m in [sqrt(1/2), sqrt(2)), and ln m = 2 artanh((m - 1) / (m + 1)).
RILL_INLINE double minus_log(double u) noexcept {
  constexpr std::uint64_t root_half = 0x3fe6a09e667f3bcd;
  constexpr std::uint64_t bias = std::uint64_t{1023} << 52;  // keeps the exponent positive
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(u) - root_half + bias;
  const double exponent = static_cast<double>(static_cast<std::int32_t>(bits >> 52) - 1023);
  const double m = std::bit_cast<double>((bits & 0x000fffffffffffff) + root_half);
  const double s = (m - 1) / (m + 1);
  const double z = s * s;  // below 0.0295, so the series up to s^21 has full double precision
  double series = 0;
#pragma GCC unroll 10
  for (int odd = 21; odd >= 3; odd -= 2) series = (series + 1.0 / odd) * z;
  return -(exponent * 0.69314718055994531 + 2 * (s + s * series));
}

// cos(2 pi u) for u in [0, 1): the nearest quarter turn selects the Taylor series (sine or cosine) and sign.
RILL_INLINE double cos_turns(double u) noexcept {
  const std::int32_t quarter = static_cast<std::int32_t>(u * 4 + 0.5);
  const double x = (u - quarter * 0.25) * 6.28318530717958648;  // within pi/4 of 0; the difference is exact
  const double z = x * x;
  double cosine = 1;
  double sine = 1;
#pragma GCC unroll 9
  for (int k = 18; k >= 2; k -= 2) {
    cosine = 1 - cosine * z * (1.0 / ((k - 1) * k));
    sine = 1 - sine * z * (1.0 / (k * (k + 1)));
  }
  const double value = quarter & 1 ? sine * x : cosine;
  return (quarter + 1) & 2 ? -value : value;
}

// A normal variate from the two draws of a block (Box-Muller). Adding 1 keeps the logarithm finite.
RILL_INLINE double normal_of(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) noexcept {
  const double radius = std::sqrt(2 * minus_log((upper_bits(a, b) + 1) * 0x1p-53));
  return radius * cos_turns(upper_bits(c, d) * 0x1p-53);
}

template <class T>
RILL_KERNEL void normal_blocks(std::uint64_t first, std::int64_t n, std::uint64_t seed, std::uint64_t stream,
                               double mean, double std, T* out) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t index = first + static_cast<std::uint64_t>(i);
    const PhiloxBlock r =
        philox_block({low(index), high(index), low(stream), high(stream)}, low(seed), high(seed));
    out[i] = static_cast<T>(mean + std * normal_of(r.a, r.b, r.c, r.d));
  }
}

// `scale` where the random word is below the threshold, which is 2^32 times the probability (at most 2^32).
template <class T>
RILL_KERNEL void mask_blocks(std::uint64_t first, std::int64_t blocks, PhiloxBlock fixed,
                             std::uint64_t threshold, T scale, T* out) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::uint64_t index = first + static_cast<std::uint64_t>(i);
    const PhiloxBlock r = philox_block({low(index), high(index), fixed.c, fixed.d}, fixed.a, fixed.b);
    out[4 * i] = r.a < threshold ? scale : T(0);
    out[4 * i + 1] = r.b < threshold ? scale : T(0);
    out[4 * i + 2] = r.c < threshold ? scale : T(0);
    out[4 * i + 3] = r.d < threshold ? scale : T(0);
  }
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) noexcept {
  const PhiloxBlock r = philox_block({counter[0], counter[1], counter[2], counter[3]}, key[0], key[1]);
  return {r.a, r.b, r.c, r.d};
}

std::uint64_t Rng::next() noexcept {
  const std::uint64_t block = state_.counter / 2;
  if (block != block_) {
    const PhiloxBlock r = philox_block({low(block), high(block), low(state_.stream), high(state_.stream)},
                                       low(state_.seed), high(state_.seed));
    draws_ = {join(r.a, r.b), join(r.c, r.d)};
    block_ = block;
  }
  return draws_[state_.counter++ % 2];
}

double Rng::uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }

double Rng::normal() noexcept {
  const std::uint64_t first = next();
  const std::uint64_t second = next();
  return normal_of(low(first), high(first), low(second), high(second));
}

std::uint64_t Rng::below(std::uint64_t n) {
  check(n > 0, "Rng::below: n is 0; it must be at least 1");
  // Draws beyond the largest multiple of n are discarded: they would favour small results.
  const std::uint64_t excess = (0 - n) % n;
  std::uint64_t x = next();
  while (x > ~excess) x = next();
  return x % n;
}

Rng Rng::split() noexcept {
  const std::uint64_t seed = next();
  const std::uint64_t stream = next();
  return Rng(seed, stream);
}

std::vector<std::int64_t> Rng::permutation(std::int64_t n) {
  check(n >= 0, "Rng::permutation: length {} is negative", n);
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  shuffle(order);
  return order;
}

template <class T>
void Rng::fill_uniform(T* to, std::int64_t n, double lo, double hi) {
  check(std::isfinite(hi - lo) && lo <= hi, "Rng::fill_uniform: [{}, {}) is not a finite interval", lo, hi);
  const T top = static_cast<T>(hi);
  for (std::int64_t i = 0; i < n; ++i) {
    const T x = static_cast<T>(lo + (hi - lo) * uniform());
    to[i] = x < top || lo == hi ? x : std::nextafter(top, static_cast<T>(lo));  // rounding may reach hi
  }
}

template <class T>
void Rng::fill_normal(T* to, std::int64_t n, double mean, double std) {
  check(std >= 0 && std::isfinite(std) && std::isfinite(mean),
        "Rng::fill_normal: mean {} and standard deviation {} must be finite, and the deviation not negative",
        mean, std);
  if (state_.counter % 2 == 0) {
    normal_blocks(state_.counter / 2, n, state_.seed, state_.stream, mean, std, to);
    state_.counter += 2 * static_cast<std::uint64_t>(std::max<std::int64_t>(n, 0));
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(mean + std * normal());
  }
}

template <class T>
void bernoulli_mask(std::uint64_t seed, std::uint64_t stream, std::uint64_t call, std::int64_t begin,
                    std::int64_t end, double keep_probability, T scale, T* out) noexcept {
  const double words = std::clamp(keep_probability, 0.0, 1.0) * 0x1p32;
  const std::uint64_t threshold = static_cast<std::uint64_t>(words + 0.5);
  // Each call derives its own key and upper half of the counter.
  const PhiloxBlock fixed =
      philox_block({low(stream), high(stream), low(call), high(call)}, low(seed), high(seed));
  const std::int64_t whole_begin = std::min((begin + 3) / 4 * 4, end);
  const std::int64_t whole_end = std::max(end / 4 * 4, whole_begin);
  const auto partial_block = [&](std::int64_t from, std::int64_t to) {
    if (from >= to) return;
    T four[4];
    mask_blocks(static_cast<std::uint64_t>(from / 4), 1, fixed, threshold, scale, four);
    std::copy(four + from % 4, four + from % 4 + (to - from), out + (from - begin));
  };
  partial_block(begin, whole_begin);
  mask_blocks(static_cast<std::uint64_t>(whole_begin / 4), (whole_end - whole_begin) / 4, fixed, threshold,
              scale, out + (whole_begin - begin));
  partial_block(whole_end, end);
}

template void Rng::fill_uniform<float>(float*, std::int64_t, double, double);
template void Rng::fill_uniform<double>(double*, std::int64_t, double, double);
template void Rng::fill_normal<float>(float*, std::int64_t, double, double);
template void Rng::fill_normal<double>(double*, std::int64_t, double, double);
template void bernoulli_mask<float>(std::uint64_t, std::uint64_t, std::uint64_t, std::int64_t, std::int64_t,
                                    double, float, float*) noexcept;
template void bernoulli_mask<double>(std::uint64_t, std::uint64_t, std::uint64_t, std::int64_t, std::int64_t,
                                     double, double, double*) noexcept;

}  // namespace rill
