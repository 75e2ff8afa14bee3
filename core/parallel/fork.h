/// Locks and forks; internal.
#pragma once

#include <pthread.h>

namespace rill::detail {

/// Has every fork of the process wait for `lock` and hold it meanwhile. Otherwise the child, which has only
/// the thread that forked, might find it taken by one that no longer exists, and what it guards half changed.
/// Call it once, when the library is loaded, for an object of static storage; none of these may be taken
/// while another is held, since the order in which forks take them is not said.
template <auto& lock>
bool hold_over_forks() noexcept {
  return pthread_atfork([] { lock.lock(); }, [] { lock.unlock(); }, [] { lock.unlock(); }) == 0;
}

}  // namespace rill::detail
