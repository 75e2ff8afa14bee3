/// Checks that many tests share.
#pragma once

#include <functional>
#include <string>

#include <rill/core/tensor.h>

namespace test {

/// The message of the rill::Error that f throws, or "no error".
std::string error_of(const std::function<void()>& f);

/// Checks that f throws an Error whose message contains `text`.
void check_error(const std::function<void()>& f, const std::string& text);

/// The largest |a - b|, or infinity if either has a NaN; the shapes must be equal.
double largest_difference(const rill::Tensor& a, const rill::Tensor& b);

/// Whether every element is neither infinite nor NaN.
bool all_finite(const rill::Tensor& x);

}  // namespace test
