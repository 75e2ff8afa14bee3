/// Vectorizable exp, log, tanh and sigmoid.
///
/// The float versions are branch-free polynomials for use in `#pragma omp simd` loops of a RILL_KERNEL. The
/// double versions are those of the standard library. Polynomials are minimax in relative error of the
/// function (Remez exchange). A unit in the last place (ulp) is that of the exact result, rounded to float.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <rill/core/kernels/simd.h>

#pragma GCC visibility push(default)

namespace rill::kernels::math {

namespace detail {

// 1.5 * 2^23: adding it rounds to an integer, which is then in the low bits.
inline constexpr float rounder = 12582912.0f;
inline constexpr float log2e = 1.44269504f;
// ln 2 in two parts; the first has few enough bits that an integer times it is exact.
inline constexpr float ln2_high = 0.693359375f;
inline constexpr float ln2_low = -2.12194440e-4f;

// expm1 on [-ln 2 / 2, ln 2 / 2], relative error below 2^-26.
RILL_INLINE float expm1_reduced(float r) noexcept {
  float q = 1.38825201e-3f;
  q = q * r + 8.36654752e-3f;
  q = q * r + 4.16672006e-2f;
  q = q * r + 0.166665435f;
  q = q * r + 0.49999997f;
  return r + r * r * q;
}

}  // namespace detail

/// e^x within 1.1 ulp; infinity above 88.7228, 0 below -87.3365 (no denormal results), NaN for NaN.
RILL_INLINE float exp(float x) noexcept {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float t = x * detail::log2e + detail::rounder;
  const float n = t - detail::rounder;
  const float r = (x - n * detail::ln2_high) - n * detail::ln2_low;
  const float p = 1.0f + detail::expm1_reduced(r);
  // p * 2^n by adding n to the exponent.
  const float y =
      std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + (std::bit_cast<std::uint32_t>(t) << 23));
  const float below_top = x <= 88.7228317f ? y : x + infinity;
  return x < -87.3365479f ? 0.0f : below_top;
}

/// Natural logarithm within 1 ulp. -infinity for 0, NaN for negative values and NaN. Denormals are supported
/// unless the thread flushes them to zero.
RILL_INLINE float log(float x) noexcept {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const bool tiny = x < std::numeric_limits<float>::min();
  const float scaled = tiny ? x * 8388608.0f : x;
  // scaled = (1 + f) 2^e with 1 + f in [sqrt(1/2), sqrt(2)).
  constexpr std::uint32_t root_half = 0x3f3504f3;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(scaled) - root_half;
  const std::int32_t exponent = static_cast<std::int32_t>(bits) >> 23;
  const float f = std::bit_cast<float>((bits & 0x007fffffu) + root_half) - 1.0f;
  const float e = static_cast<float>(exponent) - (tiny ? 23.0f : 0.0f);
  float p = -0.0763448626f;
  p = p * f + 0.127615646f;
  p = p * f - 0.13160181f;
  p = p * f + 0.142017603f;
  p = p * f - 0.166233584f;
  p = p * f + 0.200012267f;
  p = p * f - 0.250008196f;
  p = p * f + 0.333333313f;
  const float square = f * f;
  const float tail = e * detail::ln2_low + (square * f * p - 0.5f * square);
  const float y = e * detail::ln2_high + (f + tail);
  const float zero_or_less = x == 0.0f ? -infinity : std::numeric_limits<float>::quiet_NaN();
  const float finite = x > 0.0f ? y : zero_or_less;
  return x < infinity ? finite : x;
}

/// Hyperbolic tangent within 2.5 ulp, odd, from -1 to 1; NaN for NaN.
RILL_INLINE float tanh(float x) noexcept {
  const float magnitude = std::fabs(x);
  // Beyond 9.1 the result is 1; the comparison keeps NaN.
  const float a = magnitude > 9.1f ? -18.2f : -2.0f * magnitude;
  // t = expm1(-2 |x|), then tanh |x| = -t / (2 + t). The rounder here also adds the bias of the exponent.
  constexpr float biased = detail::rounder + 127.0f;
  const float k = a * detail::log2e + biased;
  const float n = k - biased;
  const float r = (a - n * detail::ln2_high) - n * detail::ln2_low;
  const float scale = std::bit_cast<float>(std::bit_cast<std::uint32_t>(k) << 23);
  const float t = scale * detail::expm1_reduced(r) + (scale - 1.0f);
  return std::copysign(t / (2.0f + t), x);
}

/// 1 / (1 + e^-x) within 2.5 ulp; 0 below -87.33, where the result would be denormal. NaN for NaN.
RILL_INLINE float sigmoid(float x) noexcept {
  constexpr float largest = 87.33f;
  const float below_top = x > largest ? -largest : -x;
  const float a = x < -largest ? largest : below_top;
  constexpr float biased = detail::rounder + 127.0f;
  const float k = a * detail::log2e + biased;
  const float n = k - biased;
  const float r = (a - n * detail::ln2_high) - n * detail::ln2_low;
  const float scale = std::bit_cast<float>(std::bit_cast<std::uint32_t>(k) << 23);
  const float y = 1.0f / ((1.0f + scale) + scale * detail::expm1_reduced(r));
  return x < -largest ? 0.0f : y;
}

// --- from the standard library
RILL_INLINE double exp(double x) noexcept { return std::exp(x); }
RILL_INLINE double log(double x) noexcept { return std::log(x); }
RILL_INLINE double tanh(double x) noexcept { return std::tanh(x); }

/// Like the float version, but 0 only at -infinity: e^-|x| never overflows.
RILL_INLINE double sigmoid(double x) noexcept {
  const double e = std::exp(-std::fabs(x));
  return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

}  // namespace rill::kernels::math

#pragma GCC visibility pop
