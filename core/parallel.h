/// The process-wide thread team, and parallel_for, which runs loops on it.
///
/// The team starts with the first parallel loop and ends with the process. Its workers block all signals
/// except synchronous ones (SIGSEGV, SIGBUS, SIGFPE, SIGILL, …) and SIGPROF. If the system cannot start all
/// threads, the team is smaller. A forked child starts its own team.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#pragma GCC visibility push(default)

namespace rill {

/// The maximum number of threads of one operation, including the calling thread.
///
/// It is the value of the last `set_num_threads`, else RILL_NUM_THREADS, else OMP_NUM_THREADS, else the number
/// of processors in the affinity mask, within the cgroup quota. Throws Error if RILL_NUM_THREADS is not in
/// 1..1024.
int num_threads();

/// Sets the number of threads, 1..1024; throws Error otherwise. Takes effect at the next parallel operation.
void set_num_threads(int n);

namespace detail {

using ParallelBody = void (*)(void* context, std::int64_t begin, std::int64_t end);

/// Per-thread state set by NoGrad, DetectAnomaly and RecordObserver. parallel_for propagates it to its chunks.
struct ThreadModes {
  bool recording = true;
  bool anomaly = false;   ///< results and gradients are checked
  bool observed = false;  ///< this thread has a RecordObserver; not propagated

  /// Whether `record` takes the slow path.
  bool watching() const noexcept { return anomaly || observed; }
};
extern constinit thread_local ThreadModes thread_modes;

/// Whether a loop started on this thread may use other threads.
bool may_fork();

/// The default of num_threads().
int initial_threads();

void run_parallel(std::int64_t n, std::int64_t grain, ParallelBody body, void* context);

}  // namespace detail

/// Calls `f(begin, end)` for disjoint chunks that cover [0, n), possibly on several threads.
///
/// A chunk has at least `grain` elements (the last may have fewer); choose the grain so that a chunk takes
/// about 10 microseconds. There is a single call on the calling thread if n <= grain, if num_threads() is 1,
/// or inside another parallel_for. Chunk bounds depend on the number of threads, so the result of an element
/// must not depend on them. NoGrad, DetectAnomaly and FlushDenormals of the calling thread apply to all
/// chunks. The first exception thrown by f is rethrown after all threads have stopped. Chunks are claimed
/// dynamically: a descheduled thread delays only its current chunk.
template <class F>
void parallel_for(std::int64_t n, std::int64_t grain, F&& f) {
  if (n <= 0) return;
  if (n <= grain || !detail::may_fork()) {
    f(std::int64_t{0}, n);
    return;
  }
  using Function = std::remove_reference_t<F>;
  const auto body = [](void* context, std::int64_t begin, std::int64_t end) {
    (*static_cast<Function*>(context))(begin, end);
  };
  detail::run_parallel(n, grain, body, const_cast<std::remove_const_t<Function>*>(std::addressof(f)));
}

/// RAII guard: this thread and the chunks of its parallel_for treat denormals as zero. Arithmetic on denormals
/// is about a hundred times slower and contributes nothing in training. The previous mode is restored on
/// destruction. No effect on processors other than x86-64 and arm64.
class FlushDenormals {
 public:
  FlushDenormals() noexcept;
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  std::uint64_t saved_;
};

}  // namespace rill

#pragma GCC visibility pop
