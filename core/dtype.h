/// Element types. A tensor's dtype is a runtime value. Ops never promote; convert with `Tensor::to`.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <rill/core/error.h>

#pragma GCC visibility push(default)

namespace rill {

/// Element type of a tensor.
enum class DType : std::uint8_t { float32, float64, int64, boolean };
using enum DType;

/// Size of one element in bytes.
constexpr std::size_t item_size(DType dtype) noexcept {
  switch (dtype) {
    case float32:
      return 4;
    case float64:
      return 8;
    case int64:
      return 8;
    case boolean:
      return 1;
  }
  return 0;
}

/// "float32", "float64", "int64" or "boolean".
constexpr const char* name(DType dtype) noexcept {
  switch (dtype) {
    case float32:
      return "float32";
    case float64:
      return "float64";
    case int64:
      return "int64";
    case boolean:
      return "boolean";
  }
  return "?";
}

/// True for float32 and float64.
constexpr bool is_floating(DType dtype) noexcept { return dtype == float32 || dtype == float64; }

namespace detail {
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = float32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = float64;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = int64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = boolean;
};
}  // namespace detail

/// The dtype of the C++ type T: float, double, std::int64_t or bool.
template <class T>
inline constexpr DType dtype_of = detail::DTypeOf<std::remove_const_t<T>>::value;

/// Tag that passes a C++ type as a value to generic lambdas.
template <class T>
struct Type {
  using type = T;  ///< T
};

/// Calls f(Type<float>{}) or f(Type<double>{}); throws "op: dtype … is not floating; …" for other dtypes.
template <class F>
decltype(auto) visit_floating(const char* op, DType dtype, F&& f) {
  if (dtype == float32) return f(Type<float>{});
  check(dtype == float64, "{}: dtype {} is not floating; use .to(float32) or .to(float64)", op, name(dtype));
  return f(Type<double>{});
}

/// Calls f(Type<T>{}), where T is the C++ type of `dtype`.
template <class F>
decltype(auto) visit(DType dtype, F&& f) {
  switch (dtype) {
    case float32:
      return f(Type<float>{});
    case float64:
      return f(Type<double>{});
    case int64:
      return f(Type<std::int64_t>{});
    case boolean:
      break;
  }
  return f(Type<bool>{});
}

namespace detail {
[[noreturn, gnu::cold, gnu::noinline]] inline void fail_dtypes(const char* op, DType a, DType b) {
  const bool both = is_floating(a) && is_floating(b);
  const char* const wider = name(is_floating(b) || a == boolean ? b : a);
  fail("{}: dtypes {} and {} differ; use .to({})", op, name(a), name(b),
       both ? "float32) or .to(float64" : wider);
}
}  // namespace detail

/// Throws "op: dtypes … and … differ; use .to(…)" unless a equals b.
inline void check_same_dtype(const char* op, DType a, DType b) {
  if (a != b) [[unlikely]]
    detail::fail_dtypes(op, a, b);
}

/// Converts x to To. A floating value out of range of an integer type, or NaN, becomes the smallest value of
/// that type; a plain cast would be undefined behaviour.
template <class To, class From>
constexpr To convert(From x) noexcept {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr From high = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
    return x >= low && x < high ? static_cast<To>(x) : std::numeric_limits<To>::min();
  } else {
    return static_cast<To>(x);
  }
}

/// Throws "op: 0.5 is not representable as int64" unless it is. Floating dtypes accept and round any value.
inline void check_representable(const char* op, double value, DType dtype) {
  const bool representable =
      is_floating(dtype) || (std::trunc(value) == value && value >= -0x1p63 && value < 0x1p63);
  check(representable, "{}: {} is not representable as {}", op, value, name(dtype));
}

}  // namespace rill

#pragma GCC visibility pop
