#include <support/expect.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <rill/core/error.h>

namespace test {

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const rill::Error& e) {
    return e.what();
  }
  return "no error";
}

void check_error(const std::function<void()>& f, const std::string& text) {
  const std::string message = error_of(f);
  CHECK_MESSAGE(message.find(text) != std::string::npos, "'", message, "' does not contain '", text, "'");
}

double largest_difference(const rill::Tensor& a, const rill::Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const auto x = a.to_vector(), y = b.to_vector();
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = std::abs(x[i] - y[i]);
    largest = std::isnan(d) ? std::numeric_limits<double>::infinity() : std::max(largest, d);
    if (std::isinf(largest)) break;
  }
  return largest;
}

bool all_finite(const rill::Tensor& x) {
  const auto values = x.to_vector();
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

}  // namespace test
