/// Pointwise ops of two tensors.
#include <cmath>

#include <rill/core/ops/pointwise.h>

namespace rill {
namespace {

struct Add {
  static constexpr const char* name = "add";
  static constexpr Keeps keeps = Keeps::nothing;
  RILL_INLINE auto forward(auto a, auto b) const { return a + b; }
};

struct Sub {
  static constexpr const char* name = "sub";
  static constexpr Keeps keeps = Keeps::nothing;
  RILL_INLINE auto forward(auto a, auto b) const { return a - b; }
  RILL_INLINE auto backward_b(auto dy, auto, auto) const { return -dy; }
};

struct Mul {
  static constexpr const char* name = "mul";
  static constexpr Keeps keeps = Keeps::input;
  RILL_INLINE auto forward(auto a, auto b) const { return a * b; }
  RILL_INLINE auto backward_a(auto dy, auto, auto b) const { return dy * b; }
  RILL_INLINE auto backward_b(auto dy, auto a, auto) const { return dy * a; }
};

struct Div {
  static constexpr const char* name = "div";
  static constexpr Keeps keeps = Keeps::input;
  RILL_INLINE auto forward(auto a, auto b) const { return a / b; }
  RILL_INLINE auto backward_a(auto dy, auto, auto b) const { return dy / b; }
  RILL_INLINE auto backward_b(auto dy, auto a, auto b) const { return -dy * a / (b * b); }
};

struct Pow {
  static constexpr const char* name = "pow";
  static constexpr Keeps keeps = Keeps::input;
  RILL_INLINE auto forward(auto a, auto b) const { return std::pow(a, b); }
  RILL_INLINE auto backward_a(auto dy, auto a, auto b) const {
    return b == 0 ? 0 : dy * b * std::pow(a, b - 1);
  }
  RILL_INLINE auto backward_b(auto dy, auto a, auto b) const {
    return a == 0 && b >= 0 ? 0 : dy * std::pow(a, b) * std::log(a);
  }
};

/// Where the operands are equal, each gets half of the gradient.
struct Maximum {
  static constexpr const char* name = "maximum";
  static constexpr Keeps keeps = Keeps::input;
  RILL_INLINE auto forward(auto a, auto b) const { return a != a ? a : (b > a || b != b ? b : a); }
  RILL_INLINE auto backward_a(auto dy, auto a, auto b) const { return a > b ? dy : (a == b ? dy / 2 : 0); }
  RILL_INLINE auto backward_b(auto dy, auto a, auto b) const { return backward_a(dy, b, a); }
};

struct Minimum {
  static constexpr const char* name = "minimum";
  static constexpr Keeps keeps = Keeps::input;
  RILL_INLINE auto forward(auto a, auto b) const { return a != a ? a : (b < a || b != b ? b : a); }
  RILL_INLINE auto backward_a(auto dy, auto a, auto b) const { return a < b ? dy : (a == b ? dy / 2 : 0); }
  RILL_INLINE auto backward_b(auto dy, auto a, auto b) const { return backward_a(dy, b, a); }
};

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return binary(Add{}, a, b); }
Tensor sub(const Tensor& a, const Tensor& b) { return binary(Sub{}, a, b); }
Tensor mul(const Tensor& a, const Tensor& b) { return binary(Mul{}, a, b); }
Tensor div(const Tensor& a, const Tensor& b) { return binary(Div{}, a, b); }
Tensor pow(const Tensor& a, const Tensor& b) { return binary(Pow{}, a, b); }
Tensor maximum(const Tensor& a, const Tensor& b) { return binary(Maximum{}, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return binary(Minimum{}, a, b); }

}  // namespace rill
