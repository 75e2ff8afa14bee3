/// parallel_for and the process-wide thread team that runs it.
///
/// The team starts with the first parallel loop and lives until the process exits. Its workers block all
/// signals except SIGPROF and those that a thread raises itself (SIGSEGV, SIGBUS, SIGFPE, SIGILL, …). If the
/// system refuses to start a thread, the team is smaller. A forked child starts its own team.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#pragma GCC visibility push(default)

namespace rill {

/// Maximum number of threads per parallel operation, including the calling one.
///
/// The first of these that is set: `set_num_threads`, RILL_NUM_THREADS, OMP_NUM_THREADS; otherwise the number
/// of processors in the affinity mask, limited by the cgroup's CPU quota. Throws Error if RILL_NUM_THREADS is
/// not in 1..1024.
int num_threads();

/// Sets the number of threads for subsequent operations. Throws Error unless 1 <= n <= 1024.
void set_num_threads(int n);

namespace detail {

using ParallelBody = void (*)(void* context, std::int64_t begin, std::int64_t end);

/// Per-thread state of NoGrad, DetectAnomaly and RecordObserver, inherited by the workers of a parallel_for.
struct ThreadModes {
  bool recording = true;
  bool anomaly = false;   ///< check results and gradients
  bool observed = false;  ///< this thread has a RecordObserver; not inherited

  /// Whether `record` takes the slow path.
  bool watching() const noexcept { return anomaly || observed; }
};
extern constinit thread_local ThreadModes thread_modes;

/// Whether a loop started on this thread may run on several.
bool may_fork();

/// The value of num_threads() before set_num_threads().
int initial_threads();

void run_parallel(std::int64_t n, std::int64_t grain, ParallelBody body, void* context);

}  // namespace detail

/// Calls `f(begin, end)` on disjoint chunks that cover [0, n), possibly on several threads.
///
/// All chunks but the last have at least `grain` elements; choose it so that a chunk takes about 10 µs. f is
/// called once, on this thread, if n <= grain, if num_threads() is 1, or inside another parallel_for. Chunk
/// bounds depend on the number of threads, so the result for an element must not depend on them. NoGrad,
/// DetectAnomaly and FlushDenormals of the calling thread apply to all chunks. The first exception from f is
/// rethrown once all threads have stopped. Threads claim chunks dynamically, so a descheduled thread delays
/// only its current chunk.
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

/// RAII guard that flushes denormals to zero, on input and output, on this thread and in its parallel_for
/// chunks. Denormals can be a hundred times slower than normal values and contribute nothing in training. The
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
