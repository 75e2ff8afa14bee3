/// The thread team of the process, and parallel_for, which runs loops on it.
///
/// The team starts at the first loop large enough for it and ends with the process. Its workers block all
/// signals except those that a thread raises itself (SIGSEGV, SIGBUS, SIGFPE, SIGILL, …) and SIGPROF. If the
/// system cannot create all threads, the others do the work. A forked child starts its own team.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#pragma GCC visibility push(default)

namespace rill {

/// The maximum number of threads per operation, including the calling one.
///
/// Set by `set_num_threads`, else by RILL_NUM_THREADS, else by OMP_NUM_THREADS; the default is the number of
/// processors in the affinity mask, limited by the cgroup's quota. Throws Error if RILL_NUM_THREADS is not in
/// 1..1024.
int num_threads();

/// Sets the number of threads, 1..1024; throws Error otherwise. Takes effect at the next parallel operation.
void set_num_threads(int n);

namespace detail {

using ParallelBody = void (*)(void* context, std::int64_t begin, std::int64_t end);

/// Per-thread state set by NoGrad, DetectAnomaly and RecordObserver. parallel_for passes it to the workers.
struct ThreadModes {
  bool recording = true;
  bool anomaly = false;   ///< results and gradients are checked
  bool observed = false;  ///< a RecordObserver is active on this thread; not passed to workers

  /// Whether `record` takes the slow path.
  bool watching() const noexcept { return anomaly || observed; }
};
extern constinit thread_local ThreadModes thread_modes;

/// Whether a loop started here may run on more than this thread.
bool may_fork();

/// The value of num_threads() until it is set.
int initial_threads();

void run_parallel(std::int64_t n, std::int64_t grain, ParallelBody body, void* context);

}  // namespace detail

/// Calls `f(begin, end)` for disjoint chunks that cover [0, n), on several threads if n is large enough.
///
/// A chunk has at least `grain` elements (the last may have fewer); choose it so that a chunk takes about 10
/// microseconds. There is a single call, on this thread, if n <= grain, if there is only one thread, or
/// inside another parallel_for. Chunk bounds depend on the number of threads, so f must compute each element
/// the same way wherever they fall. NoGrad, DetectAnomaly and FlushDenormals of the calling thread apply to
/// all chunks. The first exception thrown by f is rethrown here after all threads have stopped. Threads claim
/// chunks dynamically, so a thread that is descheduled delays only its current chunk.
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

/// Until the end of the scope, this thread and the chunks of its parallel_for treat denormals as zero: an
/// operation on one costs about a hundred times as much, and they contribute nothing in training. The
/// destructor restores the previous mode. No effect on processors other than x86-64 and arm64.
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
