/// Pointwise ops of a tensor and a scalar.
#include <cmath>

#include <rill/core/ops/pointwise.h>

namespace rill {
namespace {

/// scale · x + offset: sums, differences and products with a scalar use this loop with different names.
struct Affine {
  static constexpr Keeps keeps = Keeps::nothing;
  const char* name;
  double scale, offset;
  template <class T>
  RILL_INLINE T forward(T x) const {
    return static_cast<T>(scale) * x + static_cast<T>(offset);
  }
  template <class T>
  RILL_INLINE T backward(T dy, T) const {
    return static_cast<T>(scale) * dy;
  }
};

struct DivideBy {
  static constexpr const char* name = "div";
  static constexpr Keeps keeps = Keeps::nothing;
  double divisor;
  template <class T>
  RILL_INLINE T forward(T x) const {
    return x / static_cast<T>(divisor);
  }
  template <class T>
  RILL_INLINE T backward(T dy, T) const {
    return dy / static_cast<T>(divisor);
  }
};

struct DivideInto {
  static constexpr const char* name = "div";
  static constexpr Keeps keeps = Keeps::input;
  double dividend;
  template <class T>
  RILL_INLINE T forward(T x) const {
    return static_cast<T>(dividend) / x;
  }
  template <class T>
  RILL_INLINE T backward(T dy, T x) const {
    return -dy * static_cast<T>(dividend) / (x * x);
  }
};

struct Square {
  static constexpr Keeps keeps = Keeps::input;
  const char* name;
  RILL_INLINE auto forward(auto x) const { return x * x; }
  RILL_INLINE auto backward(auto dy, auto x) const { return 2 * dy * x; }
};

struct Power {
  static constexpr const char* name = "pow";
  static constexpr Keeps keeps = Keeps::input;
  double exponent;
  template <class T>
  RILL_INLINE T forward(T x) const {
    return std::pow(x, static_cast<T>(exponent));
  }
  template <class T>
  RILL_INLINE T backward(T dy, T x) const {
    return exponent == 0 ? 0 : dy * static_cast<T>(exponent) * std::pow(x, static_cast<T>(exponent - 1));
  }
};

}  // namespace

Tensor add(const Tensor& a, double b) { return unary(Affine{"add", 1, b}, a); }
Tensor sub(const Tensor& a, double b) { return unary(Affine{"sub", 1, -b}, a); }
Tensor sub(double a, const Tensor& b) { return unary(Affine{"sub", -1, a}, b); }
Tensor mul(const Tensor& a, double b) { return unary(Affine{"mul", b, 0}, a); }
Tensor div(const Tensor& a, double b) { return unary(DivideBy{b}, a); }
Tensor div(double a, const Tensor& b) { return unary(DivideInto{a}, b); }
Tensor square(const Tensor& x) { return unary(Square{"square"}, x); }
Tensor pow(const Tensor& x, double exponent) {
  return exponent == 2 ? unary(Square{"pow"}, x) : unary(Power{exponent}, x);
}

}  // namespace rill
