/// Locks across fork(). Internal.
#pragma once

#include <pthread.h>

namespace rill::detail {

/// Makes every fork() acquire `lock` before and release it after. Otherwise the child, which has only the
/// forking thread, might find it locked by a thread that no longer exists, and the guarded data inconsistent.
/// Call it once, when the library is loaded, for an object of static storage. None of these locks may be
/// acquired while another is held, since fork() acquires them in an unspecified order.
template <auto& lock>
bool hold_over_forks() noexcept {
  return pthread_atfork([] { lock.lock(); }, [] { lock.unlock(); }, [] { lock.unlock(); }) == 0;
}

}  // namespace rill::detail
