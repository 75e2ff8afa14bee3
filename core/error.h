/// The exception type of rill and the checks that throw it.
///
/// A message names the op, states the fact with its values and suggests a remedy:
/// `check(a.size(1) == b.size(0), "matmul: inner sizes {} and {} differ; transpose one side", …)`.
#pragma once

#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#pragma GCC visibility push(default)

namespace rill {

/// Thrown by every function of rill on invalid input; `what()` reads "op: fact with values; remedy".
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {

// _GLIBCXX_DEBUG changes the layout of containers. If the program and the library disagree on it, linking
// fails with an undefined symbol whose name tells why.
#ifdef _GLIBCXX_DEBUG
extern const char rill_was_built_with_GLIBCXX_DEBUG;
[[gnu::used, gnu::retain]] inline const char* const needs_glibcxx_debug = &rill_was_built_with_GLIBCXX_DEBUG;
#else
extern const char rill_was_built_without_GLIBCXX_DEBUG;
[[gnu::used, gnu::retain]] inline const char* const needs_no_glibcxx_debug =
    &rill_was_built_without_GLIBCXX_DEBUG;
#endif

[[noreturn, gnu::cold, gnu::noinline]] inline void throw_error(fmt::string_view format,
                                                               fmt::format_args args) {
  throw Error(fmt::vformat(format, args));
}

}  // namespace detail

/// Throws Error with the formatted message. The format string is checked at compile time.
template <class... A>
[[noreturn, gnu::cold, gnu::noinline]] void fail(fmt::format_string<A...> format, A&&... args) {
  detail::throw_error(format, fmt::make_format_args(args...));
}

/// Throws Error with the formatted message unless `ok`. A passing check costs one branch and formats nothing,
/// but its arguments are always evaluated, so keep them cheap.
template <class... A>
[[gnu::always_inline]] inline void check(bool ok, fmt::format_string<A...> format, A&&... args) {
  if (!ok) [[unlikely]] {
    fail<A...>(format, std::forward<A>(args)...);
  }
}

}  // namespace rill

#pragma GCC visibility pop
