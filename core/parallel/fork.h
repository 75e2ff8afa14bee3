/// Locks across fork(). Internal.
#pragma once

#include <pthread.h>

namespace rill::detail {

/// Registers fork handlers that acquire `lock` before every fork() and release it afterwards in parent and
/// child. Otherwise the child, which only has the forking thread, could inherit a lock held by a thread that
/// does not exist there, and inconsistent data. Call once per lock of static storage, at library load. Such
/// locks must not be nested, since the order in which fork() acquires them is unspecified.
template <auto& lock>
bool lock_across_forks() noexcept {
  return pthread_atfork([] { lock.lock(); }, [] { lock.unlock(); }, [] { lock.unlock(); }) == 0;
}

}  // namespace rill::detail
