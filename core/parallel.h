/// The process's one team of threads, and parallel_for, which runs loops on it.
///
/// The team starts at the first loop that is worth it and ends with the process. Its workers block all
/// signals but those that a thread raises itself (SIGSEGV, SIGBUS, SIGFPE, SIGILL, …) and SIGPROF. If the
/// system does not grant all threads, those that there are do the work. A forked child has a team of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#pragma GCC visibility push(default)

namespace rill {

/// The most threads that work on one operation, the calling one included.
///
/// That is the last `set_num_threads`, else RILL_NUM_THREADS, else OMP_NUM_THREADS, else what the process may
/// use: the processors of its affinity mask, within its cgroup's quota. Throws Error if RILL_NUM_THREADS is
/// not in 1..1024.
int num_threads();

/// Sets the number of threads, 1..1024; throws Error otherwise. Takes effect at the next parallel operation.
void set_num_threads(int n);

namespace detail {

using ParallelBody = void (*)(void* context, std::int64_t begin, std::int64_t end);

/// State that NoGrad, DetectAnomaly and RecordObserver set on a thread. A parallel_for hands it to its
/// helpers.
struct ThreadModes {
  bool recording = true;
  bool anomaly = false;   ///< results and gradients are checked
  bool observed = false;  ///< a RecordObserver lives on this very thread; not handed on

  /// Whether `record` takes the slow way.
  bool watching() const noexcept { return anomaly || observed; }
};
extern constinit thread_local ThreadModes thread_modes;

/// Whether a loop started here may run on more than this thread.
bool may_fork();

/// The value of num_threads() until it is set.
int initial_threads();

void run_parallel(std::int64_t n, std::int64_t grain, ParallelBody body, void* context);

}  // namespace detail

/// Calls `f(begin, end)` for disjoint chunks that together are [0, n), on several threads if that may pay.
///
/// A chunk has at least `grain` elements (the last may have fewer): choose it so that a chunk is worth some
/// 10 microseconds. There is one call, on this thread, if n <= grain, if there is one thread, or inside
/// another parallel_for. Chunk bounds depend on the number of threads, so f must compute each element the
/// same way wherever they fall. NoGrad, DetectAnomaly and FlushDenormals of the calling thread hold in all
/// chunks. The first exception that f throws is thrown here after all threads have stopped. Threads claim
/// chunks as they come: one that gets no processor delays only the chunk it holds.
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

/// While it lives, this thread and the chunks of its parallel_for read and write denormals as zero: they cost
/// a hundred times a normal operation and contribute nothing in training. The previous mode comes back at the
/// end. Does nothing on processors other than x86-64 and arm64.
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
