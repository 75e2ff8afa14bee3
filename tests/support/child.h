/// Child processes in tests.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace test {

/// Runs f in a forked child and returns its exit status, or -1 if it was killed by a signal, threw or did not
/// end within 20 seconds.
template <class F>
int status_in_child(F f) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(20);
    ::_exit([&]() noexcept { return f(); }());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace test
