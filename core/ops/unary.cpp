/// Pointwise ops of one tensor.
#include <cmath>
#include <limits>
#include <numbers>

#include <rill/core/ops/pointwise.h>

namespace rill {
namespace {

constexpr double inv_sqrt_2pi = 0.39894228040143267794;

struct Neg {
  static constexpr const char* name = "neg";
  static constexpr Keeps keeps = Keeps::nothing;
  RILL_INLINE auto forward(auto x) const { return -x; }
  RILL_INLINE auto backward(auto dy, auto) const { return -dy; }
};

struct Exp {
  static constexpr const char* name = "exp";
  static constexpr Keeps keeps = Keeps::output;
  RILL_INLINE auto forward(auto x) const { return kernels::math::exp(x); }
  RILL_INLINE auto backward(auto dy, auto y) const { return dy * y; }
};

struct Log {
  static constexpr const char* name = "log";
  static constexpr Keeps keeps = Keeps::input;
  RILL_INLINE auto forward(auto x) const { return kernels::math::log(x); }
  RILL_INLINE auto backward(auto dy, auto x) const { return dy / x; }
};

struct Log1p {
  static constexpr const char* name = "log1p";
  static constexpr Keeps keeps = Keeps::input;
  RILL_INLINE auto forward(auto x) const { return std::log1p(x); }
  RILL_INLINE auto backward(auto dy, auto x) const { return dy / (1 + x); }
};

struct Sqrt {
  static constexpr const char* name = "sqrt";
  static constexpr Keeps keeps = Keeps::output;
  RILL_INLINE auto forward(auto x) const { return std::sqrt(x); }
  RILL_INLINE auto backward(auto dy, auto y) const { return dy / (2 * y); }
};

struct Rsqrt {
  static constexpr const char* name = "rsqrt";
  static constexpr Keeps keeps = Keeps::output;
  RILL_INLINE auto forward(auto x) const { return 1 / std::sqrt(x); }
  RILL_INLINE auto backward(auto dy, auto y) const { return dy * (y * y * y) / -2; }
};

struct Reciprocal {
  static constexpr const char* name = "reciprocal";
  static constexpr Keeps keeps = Keeps::output;
  RILL_INLINE auto forward(auto x) const { return 1 / x; }
  RILL_INLINE auto backward(auto dy, auto y) const { return -dy * y * y; }
};

struct Abs {
  static constexpr const char* name = "abs";
  static constexpr Keeps keeps = Keeps::input;
  RILL_INLINE auto forward(auto x) const { return std::abs(x); }
  RILL_INLINE auto backward(auto dy, auto x) const { return x > 0 ? dy : (x < 0 ? -dy : 0); }
};

struct Sin {
  static constexpr const char* name = "sin";
  static constexpr Keeps keeps = Keeps::input;
  RILL_INLINE auto forward(auto x) const { return std::sin(x); }
  RILL_INLINE auto backward(auto dy, auto x) const { return dy * std::cos(x); }
};

struct Cos {
  static constexpr const char* name = "cos";
  static constexpr Keeps keeps = Keeps::input;
  RILL_INLINE auto forward(auto x) const { return std::cos(x); }
  RILL_INLINE auto backward(auto dy, auto x) const { return -dy * std::sin(x); }
};

struct Erf {
  static constexpr const char* name = "erf";
  static constexpr Keeps keeps = Keeps::input;
  RILL_INLINE auto forward(auto x) const { return std::erf(x); }
  template <class T>
  RILL_INLINE T backward(T dy, T x) const {
    return dy * static_cast<T>(2 / std::sqrt(std::numbers::pi)) * std::exp(-x * x);
  }
};

struct Sigmoid {
  static constexpr const char* name = "sigmoid";
  static constexpr Keeps keeps = Keeps::output;
  RILL_INLINE auto forward(auto x) const { return kernels::math::sigmoid(x); }
  RILL_INLINE auto backward(auto dy, auto y) const { return dy * y * (1 - y); }
};

/// log σ(x) = min(x, 0) - log(1 + e^{-|x|}).
struct Logsigmoid {
  static constexpr const char* name = "logsigmoid";
  static constexpr Keeps keeps = Keeps::input;
  RILL_INLINE auto forward(auto x) const { return (x < 0 ? x : 0) - std::log1p(std::exp(-std::abs(x))); }
  RILL_INLINE auto backward(auto dy, auto x) const { return dy * kernels::math::sigmoid(-x); }
};

struct Tanh {
  static constexpr const char* name = "tanh";
  static constexpr Keeps keeps = Keeps::output;
  RILL_INLINE auto forward(auto x) const { return kernels::math::tanh(x); }
  RILL_INLINE auto backward(auto dy, auto y) const { return dy * (1 - y * y); }
};

struct Relu {
  static constexpr const char* name = "relu";
  static constexpr Keeps keeps = Keeps::output;
  RILL_INLINE auto forward(auto x) const { return x < 0 ? 0 : x; }  // NaN is kept
  RILL_INLINE auto backward(auto dy, auto y) const { return y > 0 ? dy : 0; }
};

struct LeakyRelu {
  static constexpr const char* name = "leaky_relu";
  static constexpr Keeps keeps = Keeps::input;
  double slope;
  template <class T>
  RILL_INLINE T forward(T x) const {
    return x > 0 ? x : static_cast<T>(slope) * x;
  }
  template <class T>
  RILL_INLINE T backward(T dy, T x) const {
    return x > 0 ? dy : static_cast<T>(slope) * dy;
  }
};

struct Silu {
  static constexpr const char* name = "silu";
  static constexpr Keeps keeps = Keeps::input;
  RILL_INLINE auto forward(auto x) const { return x * kernels::math::sigmoid(x); }
  template <class T>
  RILL_INLINE T backward(T dy, T x) const {
    const T s = kernels::math::sigmoid(x);
    return dy * s * (1 + x * (1 - s));
  }
};

/// Exact form, with Φ from the error function.
struct Gelu {
  static constexpr const char* name = "gelu";
  static constexpr Keeps keeps = Keeps::input;
  RILL_INLINE auto forward(auto x) const { return x * phi(x); }
  template <class T>
  RILL_INLINE T backward(T dy, T x) const {
    return dy * (phi(x) + x * static_cast<T>(inv_sqrt_2pi) * std::exp(-x * x / 2));
  }

 private:
  template <class T>
  RILL_INLINE T phi(T x) const {
    return (1 + std::erf(x / static_cast<T>(std::numbers::sqrt2))) / 2;
  }
};

/// Hendrycks and Gimpel 2016: x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))).
struct GeluTanh {
  static constexpr const char* name = "gelu";
  static constexpr Keeps keeps = Keeps::input;
  RILL_INLINE auto forward(auto x) const { return x / 2 * (1 + bend(x)); }
  template <class T>
  RILL_INLINE T backward(T dy, T x) const {
    const T t = bend(x);
    const T slope = static_cast<T>(2 * inv_sqrt_2pi) * (1 + static_cast<T>(3 * 0.044715) * x * x);
    return dy * ((1 + t) / 2 + x / 2 * (1 - t * t) * slope);
  }

 private:
  template <class T>
  RILL_INLINE T bend(T x) const {
    return kernels::math::tanh(static_cast<T>(2 * inv_sqrt_2pi) * (x + static_cast<T>(0.044715) * x * x * x));
  }
};

struct Softplus {
  static constexpr const char* name = "softplus";
  static constexpr Keeps keeps = Keeps::input;
  double beta, threshold;
  template <class T>
  RILL_INLINE T forward(T x) const {
    const T z = static_cast<T>(beta) * x;
    return z > static_cast<T>(threshold) ? x : std::log1p(std::exp(z)) / static_cast<T>(beta);
  }
  template <class T>
  RILL_INLINE T backward(T dy, T x) const {
    const T z = static_cast<T>(beta) * x;
    return z > static_cast<T>(threshold) ? dy : dy * kernels::math::sigmoid(z);
  }
};

struct Clamp {
  static constexpr const char* name = "clamp";
  static constexpr Keeps keeps = Keeps::input;
  double lo, hi;
  template <class T>
  RILL_INLINE T forward(T x) const {
    const T above = x < static_cast<T>(lo) ? static_cast<T>(lo) : x;
    return above > static_cast<T>(hi) ? static_cast<T>(hi) : above;
  }
  template <class T>
  RILL_INLINE T backward(T dy, T x) const {
    return x >= static_cast<T>(lo) && x <= static_cast<T>(hi) ? dy : 0;
  }
};

}  // namespace

Tensor neg(const Tensor& x) { return unary(Neg{}, x); }
Tensor exp(const Tensor& x) { return unary(Exp{}, x); }
Tensor log(const Tensor& x) { return unary(Log{}, x); }
Tensor log1p(const Tensor& x) { return unary(Log1p{}, x); }
Tensor sqrt(const Tensor& x) { return unary(Sqrt{}, x); }
Tensor rsqrt(const Tensor& x) { return unary(Rsqrt{}, x); }
Tensor reciprocal(const Tensor& x) { return unary(Reciprocal{}, x); }
Tensor abs(const Tensor& x) { return unary(Abs{}, x); }
Tensor sin(const Tensor& x) { return unary(Sin{}, x); }
Tensor cos(const Tensor& x) { return unary(Cos{}, x); }
Tensor erf(const Tensor& x) { return unary(Erf{}, x); }
Tensor sigmoid(const Tensor& x) { return unary(Sigmoid{}, x); }
Tensor logsigmoid(const Tensor& x) { return unary(Logsigmoid{}, x); }
Tensor tanh(const Tensor& x) { return unary(Tanh{}, x); }
Tensor relu(const Tensor& x) { return unary(Relu{}, x); }
Tensor silu(const Tensor& x) { return unary(Silu{}, x); }

Tensor leaky_relu(const Tensor& x, double negative_slope) { return unary(LeakyRelu{negative_slope}, x); }

Tensor gelu(const Tensor& x, Approximate approximate) {
  return approximate == Approximate::tanh ? unary(GeluTanh{}, x) : unary(Gelu{}, x);
}

Tensor softplus(const Tensor& x, double beta, double threshold) {
  check(beta > 0, "softplus: beta {} must be positive", beta);
  return unary(Softplus{beta, threshold}, x);
}

Tensor clamp(const Tensor& x, std::optional<double> lo, std::optional<double> hi) {
  check(lo || hi, "clamp: neither a lower nor an upper bound is given");
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return unary(Clamp{lo.value_or(-infinity), hi.value_or(infinity)}, x);
}

}  // namespace rill
