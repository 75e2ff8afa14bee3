/// The one team of threads of the process, and how work is given to it.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace rill {

/// How many threads work at most on one operation, the calling one included.
///
/// That is the last `set_num_threads`, else RILL_NUM_THREADS, else OMP_NUM_THREADS, else what the process may
/// use: the processors of its affinity mask, within its cgroup's quota. Throws Error if RILL_NUM_THREADS is
/// not in 1..1024.
int num_threads();

/// Sets the number of threads, 1..1024; throws Error otherwise. Takes effect at the next parallel operation.
void set_num_threads(int n);

namespace detail {

using ParallelBody = void (*)(void* context, std::int64_t begin, std::int64_t end);

/// Whether a loop started here would run on more than this thread.
bool may_fork();

/// What num_threads is until it is set.
int initial_threads();

void run_parallel(std::int64_t n, std::int64_t grain, ParallelBody body, void* context);

}  // namespace detail

/// Calls `f(begin, end)` for disjoint ranges that together are [0, n), on several threads if that may pay.
///
/// A range has at least `grain` elements (the last may have fewer): choose it so that one range is worth some
/// 10 microseconds. The whole is one call on this thread if n <= grain, if there is one thread, or inside
/// another parallel_for. Where the borders fall depends on the number of threads, so f must compute each
/// element the same way wherever they are. The first exception that f throws is thrown here after all threads
/// have stopped. Idle threads take ranges as they come: a thread that gets no processor delays nothing but
/// the range it holds.
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

/// While it lives, this thread reads and writes denormal numbers as zero, as do the threads that help it in a
/// parallel_for. Denormals cost a hundred times a normal operation and carry nothing in training. The earlier
/// setting comes back at the end. Does nothing on processors other than x86-64 and arm64.
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
