/// Pointwise ops of two operands, and their forms with a scalar.
#include <cmath>

#include <rill/core/ops/pointwise.h>

namespace rill {
namespace {

struct Add {
  static constexpr const char* name = "add";
  static constexpr Keeps keeps = Keeps::nothing;
  static constexpr bool passes_a = true, passes_b = true;
  template <class T>
  RILL_INLINE T forward(T a, T b) const {
    return a + b;
  }
  template <class T>
  RILL_INLINE T backward_a(T dy, T, T) const {
    return dy;
  }
  template <class T>
  RILL_INLINE T backward_b(T dy, T, T) const {
    return dy;
  }
};

struct Sub {
  static constexpr const char* name = "sub";
  static constexpr Keeps keeps = Keeps::nothing;
  static constexpr bool passes_a = true, passes_b = false;
  template <class T>
  RILL_INLINE T forward(T a, T b) const {
    return a - b;
  }
  template <class T>
  RILL_INLINE T backward_a(T dy, T, T) const {
    return dy;
  }
  template <class T>
  RILL_INLINE T backward_b(T dy, T, T) const {
    return -dy;
  }
};

struct Mul {
  static constexpr const char* name = "mul";
  static constexpr Keeps keeps = Keeps::input;
  template <class T>
  RILL_INLINE T forward(T a, T b) const {
    return a * b;
  }
  template <class T>
  RILL_INLINE T backward_a(T dy, T, T b) const {
    return dy * b;
  }
  template <class T>
  RILL_INLINE T backward_b(T dy, T a, T) const {
    return dy * a;
  }
};

struct Div {
  static constexpr const char* name = "div";
  static constexpr Keeps keeps = Keeps::input;
  template <class T>
  RILL_INLINE T forward(T a, T b) const {
    return a / b;
  }
  template <class T>
  RILL_INLINE T backward_a(T dy, T, T b) const {
    return dy / b;
  }
  template <class T>
  RILL_INLINE T backward_b(T dy, T a, T b) const {
    return -dy * a / (b * b);
  }
};

struct Pow {
  static constexpr const char* name = "pow";
  static constexpr Keeps keeps = Keeps::input;
  template <class T>
  RILL_INLINE T forward(T a, T b) const {
    return std::pow(a, b);
  }
  template <class T>
  RILL_INLINE T backward_a(T dy, T a, T b) const {
    return b == 0 ? T{0} : dy * b * std::pow(a, b - 1);
  }
  template <class T>
  RILL_INLINE T backward_b(T dy, T a, T b) const {
    return a == 0 && b >= 0 ? T{0} : dy * std::pow(a, b) * std::log(a);
  }
};

/// The gradient of a tie goes half to each side.
struct Maximum {
  static constexpr const char* name = "maximum";
  static constexpr Keeps keeps = Keeps::input;
  template <class T>
  RILL_INLINE T forward(T a, T b) const {
    return a != a ? a : (b > a || b != b ? b : a);
  }
  template <class T>
  RILL_INLINE T backward_a(T dy, T a, T b) const {
    return a > b ? dy : (a == b ? dy / 2 : T{0});
  }
  template <class T>
  RILL_INLINE T backward_b(T dy, T a, T b) const {
    return backward_a(dy, b, a);
  }
};

struct Minimum {
  static constexpr const char* name = "minimum";
  static constexpr Keeps keeps = Keeps::input;
  template <class T>
  RILL_INLINE T forward(T a, T b) const {
    return a != a ? a : (b < a || b != b ? b : a);
  }
  template <class T>
  RILL_INLINE T backward_a(T dy, T a, T b) const {
    return a < b ? dy : (a == b ? dy / 2 : T{0});
  }
  template <class T>
  RILL_INLINE T backward_b(T dy, T a, T b) const {
    return backward_a(dy, b, a);
  }
};

/// scale · x + offset: sums, differences and products with a number are this loop under different names.
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

struct DivScalar {
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

struct RdivScalar {
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

struct PowScalar {
  static constexpr const char* name = "pow";
  static constexpr Keeps keeps = Keeps::input;
  double exponent;
  template <class T>
  RILL_INLINE T forward(T x) const {
    return std::pow(x, static_cast<T>(exponent));
  }
  template <class T>
  RILL_INLINE T backward(T dy, T x) const {
    return exponent == 0 ? T{0} : dy * static_cast<T>(exponent) * std::pow(x, static_cast<T>(exponent - 1));
  }
};

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return binary(Add{}, a, b); }
Tensor sub(const Tensor& a, const Tensor& b) { return binary(Sub{}, a, b); }
Tensor mul(const Tensor& a, const Tensor& b) { return binary(Mul{}, a, b); }
Tensor div(const Tensor& a, const Tensor& b) { return binary(Div{}, a, b); }
Tensor pow(const Tensor& a, const Tensor& b) { return binary(Pow{}, a, b); }
Tensor maximum(const Tensor& a, const Tensor& b) { return binary(Maximum{}, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return binary(Minimum{}, a, b); }

Tensor add(const Tensor& a, double b) { return unary(Affine{"add", 1, b}, a); }
Tensor sub(const Tensor& a, double b) { return unary(Affine{"sub", 1, -b}, a); }
Tensor mul(const Tensor& a, double b) { return unary(Affine{"mul", b, 0}, a); }
Tensor div(const Tensor& a, double b) { return unary(DivScalar{b}, a); }
Tensor sub(double a, const Tensor& b) { return unary(Affine{"sub", -1, a}, b); }
Tensor div(double a, const Tensor& b) { return unary(RdivScalar{a}, b); }
Tensor pow(const Tensor& a, double exponent) {
  return exponent == 2 ? square(a) : unary(PowScalar{exponent}, a);
}

}  // namespace rill
