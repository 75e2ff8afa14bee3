#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <rill/core/kernels/math.h>
#include <rill/core/kernels/reduce.h>
#include <rill/core/kernels/simd.h>
#include <rill/core/kernels/softmax.h>
#include <rill/core/parallel.h>
#include <rill/core/random.h>

namespace rill::kernels {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

#define RILL_TEST_KERNEL(name)                                                        \
  RILL_KERNEL void name##_all(const float* x, float* y, std::int64_t n) {             \
    _Pragma("omp simd") for (std::int64_t i = 0; i < n; ++i) y[i] = math::name(x[i]); \
  }
RILL_TEST_KERNEL(exp)
RILL_TEST_KERNEL(log)
RILL_TEST_KERNEL(tanh)
RILL_TEST_KERNEL(sigmoid)
#undef RILL_TEST_KERNEL

using Kernel = void (*)(const float*, float*, std::int64_t);

// The error of y in ulps (units in the last place).
double ulps(float y, double exact) {
  if (std::isnan(exact) || std::isnan(y)) return std::isnan(exact) && std::isnan(y) ? 0 : 1e9;
  const float nearest = static_cast<float>(exact);
  if (std::isinf(nearest) || std::isinf(y)) return y == nearest ? 0 : 1e9;
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(y - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

// Order-preserving map from floats to integers, and its inverse.
std::int64_t rank(float x) {
  const std::int32_t bits = std::bit_cast<std::int32_t>(x);
  return bits < 0 ? -static_cast<std::int64_t>(bits & 0x7fffffff) : bits;
}
float from_rank(std::int64_t i) {
  const float magnitude = std::bit_cast<float>(static_cast<std::uint32_t>(i < 0 ? -i : i));
  return i < 0 ? -magnitude : magnitude;
}

// The largest error of f in ulps over every stride-th float in [lo, hi].
template <class Exact>
double worst_ulps(Kernel f, Exact exact, float lo, float hi, std::int64_t stride = 1999) {
  std::vector<float> x;
  for (std::int64_t i = rank(lo); i <= rank(hi); i += stride) x.push_back(from_rank(i));
  REQUIRE(x.size() > 1000);
  std::vector<float> y(x.size());
  f(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double distance = ulps(y[i], exact(static_cast<double>(x[i])));
    if (distance > worst) worst = distance;
  }
  return worst;
}

// f(x), computed in the middle of a SIMD loop.
float evaluate(Kernel f, float x) {
  std::vector<float> in(37, x);
  std::vector<float> out(37);
  f(in.data(), out.data(), 37);
  return out[17];
}

template <class T>
std::vector<T> normals(std::int64_t n, std::uint64_t seed) {
  std::vector<T> x(static_cast<std::size_t>(n));
  Rng(seed).fill_normal(x.data(), n, 0.1, 1);
  return x;
}

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;

constexpr std::int64_t sizes[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 100, 511, 512, 513, 1025, 5000};

}  // namespace

TEST_CASE("math: exp is within 1.1 ulp and saturates") {
  const auto exact = [](double x) { return std::exp(x); };
  CHECK(worst_ulps(exp_all, exact, -87.3365f, 88.7228f) < 1.1);
  CHECK(worst_ulps(exp_all, exact, 88.3f, 88.72283f, 3) < 1.1);
  CHECK(worst_ulps(exp_all, exact, -87.3365f, -86.9f, 3) < 1.1);
  CHECK(evaluate(exp_all, 0.0f) == 1.0f);
  CHECK(evaluate(exp_all, -0.0f) == 1.0f);
  CHECK(evaluate(exp_all, 88.7228394f) == infinity);
  CHECK(evaluate(exp_all, 1e30f) == infinity);
  CHECK(evaluate(exp_all, infinity) == infinity);
  CHECK(evaluate(exp_all, -87.34f) == 0.0f);
  CHECK(evaluate(exp_all, -1e30f) == 0.0f);
  CHECK(evaluate(exp_all, -infinity) == 0.0f);
  CHECK(std::isnan(evaluate(exp_all, not_a_number)));
}

TEST_CASE("math: log is within 1 ulp, denormals included") {
  const auto exact = [](double x) { return std::log(x); };
  CHECK(worst_ulps(log_all, exact, 0.0f, std::numeric_limits<float>::max()) < 1.0);
  CHECK(worst_ulps(log_all, exact, 0.99f, 1.01f, 1) < 1.0);
  CHECK(worst_ulps(log_all, exact, 1e-45f, 1.1e-38f) < 1.0);
  CHECK(evaluate(log_all, 1.0f) == 0.0f);
  CHECK(evaluate(log_all, 0.0f) == -infinity);
  CHECK(evaluate(log_all, -0.0f) == -infinity);
  CHECK(evaluate(log_all, infinity) == infinity);
  CHECK(std::isnan(evaluate(log_all, -1.0f)));
  CHECK(std::isnan(evaluate(log_all, -infinity)));
  CHECK(std::isnan(evaluate(log_all, not_a_number)));
  const FlushDenormals flush;
  CHECK(evaluate(log_all, 2e-38f) == doctest::Approx(std::log(2e-38)));
}

TEST_CASE("math: tanh is within 2.5 ulp, odd, and saturates") {
  const auto exact = [](double x) { return std::tanh(x); };
  CHECK(worst_ulps(tanh_all, exact, -std::numeric_limits<float>::max(), std::numeric_limits<float>::max()) <
        2.5);
  for (const float x : {1e-40f, 1e-20f, 0.3f, 1.0f, 8.9f, 9.2f, 1e30f}) {
    CHECK(evaluate(tanh_all, -x) == -evaluate(tanh_all, x));
    CHECK(evaluate(tanh_all, x) <= 1.0f);
  }
  CHECK(std::signbit(evaluate(tanh_all, -0.0f)));
  CHECK(evaluate(tanh_all, infinity) == 1.0f);
  CHECK(evaluate(tanh_all, -infinity) == -1.0f);
  CHECK(std::isnan(evaluate(tanh_all, not_a_number)));
}

TEST_CASE("math: sigmoid is within 2.5 ulp and saturates") {
  const auto exact = [](double x) { return 1 / (1 + std::exp(-x)); };
  CHECK(worst_ulps(sigmoid_all, exact, -87.33f, std::numeric_limits<float>::max()) < 2.5);
  CHECK(evaluate(sigmoid_all, 0.0f) == 0.5f);
  CHECK(evaluate(sigmoid_all, infinity) == 1.0f);
  CHECK(evaluate(sigmoid_all, 200.0f) == 1.0f);
  for (const float x : {-87.34f, -200.0f, -3e38f, -infinity}) CHECK(evaluate(sigmoid_all, x) == 0.0f);
  CHECK(std::isnan(evaluate(sigmoid_all, not_a_number)));
}

TEST_CASE("math: the double versions are accurate and saturate too") {
  CHECK(math::sigmoid(0.0) == 0.5);
  CHECK(math::sigmoid(800.0) == 1.0);
  CHECK(math::sigmoid(-800.0) == 0.0);
  CHECK(math::sigmoid(-30.0) == doctest::Approx(9.357622968840175e-14).epsilon(1e-14));
  CHECK(std::isnan(math::sigmoid(std::nan(""))));
  CHECK(math::tanh(0.5) == std::tanh(0.5));
}

TEST_CASE("simd: the processor supports the level in use") { CHECK(simd_level() <= cpu_simd_level()); }

TEST_CASE_TEMPLATE("reduce: sum, dot and max of any length", T, float, double) {
  CHECK(sum<T>(nullptr, 0) == 0);
  CHECK(dot<T>(nullptr, nullptr, 0) == 0);
  CHECK(max<T>(nullptr, 0) == -std::numeric_limits<T>::infinity());
  for (const std::int64_t n : sizes) {
    CAPTURE(n);
    const auto x = normals<T>(n, 1);
    const auto y = normals<T>(n, 2);
    double total = 0;
    double product = 0;
    T greatest = x[0];
    for (std::size_t i = 0; i < x.size(); ++i) {
      total += x[i];
      product += static_cast<double>(x[i]) * y[i];
      greatest = std::max(greatest, x[i]);
    }
    CHECK(std::abs(sum(x.data(), n) - total) < tolerance<T> * (1 + std::abs(total)));
    CHECK(std::abs(dot(x.data(), y.data(), n) - product) < tolerance<T> * (1 + std::abs(product)));
    CHECK(max(x.data(), n) == greatest);
  }
}

TEST_CASE("reduce: sums of ten million equal floats have the error of a single block") {
  constexpr std::int64_t n = 10'000'000;
  const std::vector<float> x(n, 0.1f);
  // 128 sequential additions, the worst case without vectorised loops. A plain sum is off by 0.088.
  const double bound = 128 * std::pow(2.0, -24);
  const auto close = [&](float got, double want) { return std::abs(got / want - 1) < bound; };
  CHECK(close(sum(x.data(), n), n * double{0.1f}));
  CHECK(close(dot(x.data(), x.data(), n), n * double{0.1f} * double{0.1f}));
  CHECK(close(sum_abs(x.data(), n), n * double{0.1f}));
  CHECK(close(sum_squared_deviations(x.data(), 1.1f, n), n * std::pow(double{0.1f} - double{1.1f}, 2)));
  float columns[2];
  sum_rows(n / 2, 2, x.data(), 2, 0.0f, columns);
  CHECK(close(columns[0], n / 2 * double{0.1f}));
  CHECK(close(columns[1], n / 2 * double{0.1f}));
}

TEST_CASE("softmax: rows of millions of equal floats stay accurate") {
  constexpr std::int64_t n = 4'000'000;
  std::vector<float> x(n, -1.7f), y(n);
  row_softmax(x.data(), y.data(), n);
  CHECK(y[n - 1] == doctest::Approx(1.0 / n).epsilon(1e-6));
  row_log_softmax(x.data(), y.data(), n);
  CHECK(y[0] == doctest::Approx(-std::log(1.0 * n)).epsilon(1e-6));
  const LogSumExp<float> z = log_sum_exp(x.data(), n);
  CHECK(z.log_sum == doctest::Approx(std::log(1.0 * n)).epsilon(1e-6));
}

TEST_CASE_TEMPLATE("reduce: max propagates NaN from any position", T, float, double) {
  for (std::size_t at = 0; at < 40; ++at) {
    std::vector<T> x(40, T(1));
    x[at] = std::numeric_limits<T>::quiet_NaN();
    CHECK(std::isnan(max(x.data(), 40)));
  }
}

TEST_CASE_TEMPLATE("reduce: sums of rows, in order or gathered, with every beta", T, float, double) {
  for (const std::int64_t m : {0, 1, 3, 4, 9, 128, 129, 700}) {
    for (const std::int64_t n : {1, 5, 16, 33, 600}) {
      CAPTURE(m);
      CAPTURE(n);
      const std::int64_t ldx = n + 3;
      const auto x = normals<T>(m * ldx, 3);
      for (const T beta : {T(0), T(1), T(-0.5)}) {
        const T before = beta == T(0) ? std::numeric_limits<T>::quiet_NaN() : T(2);
        const double start = beta == T(0) ? 0 : beta * 2;
        std::vector<double> by_column(static_cast<std::size_t>(n), start);
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            by_column[static_cast<std::size_t>(j)] += x[static_cast<std::size_t>(i * ldx + j)];
          }
        }
        std::vector<T> rows(static_cast<std::size_t>(n), before);
        sum_rows(m, n, x.data(), ldx, beta, rows.data());
        std::vector<std::int64_t> at(static_cast<std::size_t>(m));
        for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::int64_t>(at.size() - 1 - i);
        std::vector<T> gathered(static_cast<std::size_t>(n), before);
        sum_gathered_rows(m, n, x.data(), ldx, at.data(), beta, gathered.data());
        for (std::size_t j = 0; j < rows.size(); ++j) {
          REQUIRE(std::abs(rows[j] - by_column[j]) < 20 * tolerance<T>);
          REQUIRE(std::abs(gathered[j] - by_column[j]) < 20 * tolerance<T>);
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("softmax: softmax and log_softmax of any length, also in place", T, float, double) {
  for (const std::int64_t n : sizes) {
    CAPTURE(n);
    auto x = normals<T>(n, 4);
    for (T& v : x) v = v * 3 + 1000;  // the exponentials alone would overflow
    double greatest = x[0];
    for (const T v : x) greatest = std::max<double>(greatest, v);
    double total = 0;
    for (const T v : x) total += std::exp(v - greatest);
    std::vector<T> y(x.size());
    std::vector<T> log_y(x.size());
    row_softmax(x.data(), y.data(), n);
    row_log_softmax(x.data(), log_y.data(), n);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = x[i] - greatest - std::log(total);
      REQUIRE(std::abs(log_y[i] - exact) < tolerance<T> * (1 + std::abs(exact)));
      REQUIRE(std::abs(y[i] - std::exp(exact)) < tolerance<T> * std::exp(exact));
    }
    auto in_place = x;
    row_softmax(in_place.data(), in_place.data(), n);
    CHECK(in_place == y);
    in_place = x;
    row_log_softmax(in_place.data(), in_place.data(), n);
    CHECK(in_place == log_y);
  }
}

TEST_CASE_TEMPLATE("softmax: softmax of rows with -infinity, +infinity and NaN", T, float, double) {
  const T low = -std::numeric_limits<T>::infinity();
  std::vector<T> y(3);
  const auto softmax = [&](std::vector<T> x) {
    row_softmax(x.data(), y.data(), 3);
    return y;
  };
  CHECK(softmax({low, T(2), T(2)}) == std::vector<T>{0, T(0.5), T(0.5)});
  for (const std::vector<T>& x :
       {std::vector<T>{low, low, low}, {-low, 1, 2}, {std::numeric_limits<T>::quiet_NaN(), 1, 2}}) {
    for (const T v : softmax(x)) CHECK(std::isnan(v));
  }
  const std::vector<T> x{low, T(0), T(0)};
  row_log_softmax(x.data(), y.data(), 3);
  CHECK(y[0] == low);
  CHECK(y[1] == doctest::Approx(-std::log(2.0)));
}

TEST_CASE_TEMPLATE("softmax: gradients of softmax and log_softmax match their formulas", T, float, double) {
  for (const std::int64_t n : {1, 5, 16, 33, 700}) {
    for (const T beta : {T(0), T(1)}) {
      CAPTURE(n);
      const auto x = normals<T>(n, 5);
      const auto dy = normals<T>(n, 6);
      std::vector<T> y(x.size());
      const auto check = [&](const std::vector<T>& dx, auto formula) {
        for (std::size_t i = 0; i < dx.size(); ++i) {
          const double exact = formula(i) + (beta == T(0) ? 0 : 0.25);
          REQUIRE(std::abs(dx[i] - exact) < 10 * tolerance<T> * (1 + std::abs(exact)));
        }
      };
      const T before = beta == T(0) ? std::numeric_limits<T>::quiet_NaN() : T(0.25);

      row_softmax(x.data(), y.data(), n);
      double weighted = 0;
      for (std::size_t i = 0; i < y.size(); ++i) weighted += static_cast<double>(y[i]) * dy[i];
      std::vector<T> dx(x.size(), before);
      row_softmax_backward(y.data(), dy.data(), beta, dx.data(), n);
      check(dx, [&](std::size_t i) { return y[i] * (dy[i] - weighted); });

      row_log_softmax(x.data(), y.data(), n);
      double total = 0;
      for (const T v : dy) total += v;
      std::fill(dx.begin(), dx.end(), before);
      row_log_softmax_backward(y.data(), dy.data(), beta, dx.data(), n);
      check(dx, [&](std::size_t i) { return dy[i] - std::exp(static_cast<double>(y[i])) * total; });
    }
  }
}

}  // namespace rill::kernels
