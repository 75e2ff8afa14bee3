#include <rill/core/parallel.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include <pthread.h>
#include <signal.h>

#include <rill/core/error.h>
#include <rill/core/parallel/processors.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rill {
namespace {

// --- floating-point mode of a thread

#if defined(__x86_64__)
constexpr std::uint64_t flush_bits = 0x8040;   // MXCSR: flush to zero, denormals are zero
constexpr std::uint64_t status_bits = 0x003f;  // sticky exception flags, not settings
std::uint64_t read_float_mode() noexcept { return _mm_getcsr(); }
void write_float_mode(std::uint64_t mode) noexcept { _mm_setcsr(static_cast<unsigned>(mode)); }
void relax() noexcept { _mm_pause(); }
#elif defined(__aarch64__)
constexpr std::uint64_t flush_bits = std::uint64_t{1} << 24;  // FPCR: flush to zero
constexpr std::uint64_t status_bits = 0;
std::uint64_t read_float_mode() noexcept {
  std::uint64_t mode = 0;
  __asm__ __volatile__("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
void write_float_mode(std::uint64_t mode) noexcept { __asm__ __volatile__("msr fpcr, %0" : : "r"(mode)); }
void relax() noexcept { __asm__ __volatile__("yield"); }
#else
constexpr std::uint64_t flush_bits = 0;
constexpr std::uint64_t status_bits = 0;
std::uint64_t read_float_mode() noexcept { return 0; }
void write_float_mode(std::uint64_t) noexcept {}
void relax() noexcept {}
#endif

void set_float_mode(std::uint64_t mode) noexcept {
  const std::uint64_t current = read_float_mode();
  if ((current ^ mode) & ~status_bits) write_float_mode((mode & ~status_bits) | (current & status_bits));
}

// --- number of threads

constexpr int max_threads = 1024;

std::atomic<int> requested_threads{0};  // 0 until num_threads() or set_num_threads() is called

std::optional<int> environment_threads(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const std::string_view value(text);
  int n = 0;
  const auto [end, error] = std::from_chars(value.begin(), value.end(), n);
  const bool whole = error == std::errc() && end == value.end() && n >= 1 && n <= max_threads;
  return whole ? n : 0;
}

// --- team

constexpr std::chrono::microseconds spin_time{50};

// Polls done() for at most spin_time; returns its last result.
template <class Done>
bool spin_until(Done done) noexcept {
  const auto end = std::chrono::steady_clock::now() + spin_time;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

// Whether this thread is executing a parallel region; a nested parallel_for runs serially.
constinit thread_local bool in_region = false;

// One parallel_for: threads claim chunks by incrementing `next`.
struct Job {
  detail::ParallelBody body;
  void* context;
  std::int64_t n;
  std::int64_t chunk_size;
  std::int64_t chunks;
  std::uint64_t float_mode;          // of the calling thread
  detail::ThreadModes thread_modes;  // of the calling thread
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // of the chunk that set `failed`

  void run_chunks() noexcept {
    for (;;) {
      const std::int64_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= chunks) return;
      try {
        body(context, index * chunk_size, std::min((index + 1) * chunk_size, n));
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
        next.store(chunks, std::memory_order_relaxed);
      }
    }
  }

  void adopt_modes() const noexcept {
    set_float_mode(float_mode);
    detail::thread_modes = {.recording = thread_modes.recording, .anomaly = thread_modes.anomaly};
  }
};

// Signals that workers block, so that signals sent to the process reach the program's own threads.
// Synchronous signals stay unblocked, since the kernel kills the process if one is blocked; profilers sample
// by SIGPROF.
sigset_t blocked_signals() noexcept {
  sigset_t signals;
  sigfillset(&signals);
  for (const int raised : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
    sigdelset(&signals, raised);
  }
  return signals;
}

// The worker threads. The thread that runs a region publishes a job, opens the gate, runs chunks itself,
// closes the gate and waits for the workers inside. A worker that has not woken up by then finds the gate
// closed and is not waited for.
class Team {
 public:
  explicit Team(int size) : size_(size) {
    const sigset_t blocked = blocked_signals();
    sigset_t previous;
    pthread_sigmask(SIG_BLOCK, &blocked, &previous);
    try {
      workers_.reserve(static_cast<std::size_t>(size) - 1);
      while (std::ssize(workers_) < size - 1) workers_.emplace_back([this] { work(); });
    } catch (const std::exception&) {
      // The system cannot start more threads; continue with those that have started.
    }
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  }

  ~Team() {
    stopping_.store(true);
    gate_.fetch_add(one_epoch);
    gate_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // The requested size, including the calling thread; fewer workers may have started.
  int size() const noexcept { return size_; }

  void run(Job& job) noexcept {
    job_ = &job;
    // The count is 0 and the gate closed, so this opens the gate in the next epoch.
    gate_.fetch_add(one_epoch | open);
    const auto helpers = std::min<std::int64_t>(job.chunks - 1, std::ssize(workers_));
    if (helpers == std::ssize(workers_)) {
      gate_.notify_all();
    } else {
      for (std::int64_t i = 0; i < helpers; ++i) gate_.notify_one();
    }
    job.run_chunks();
    gate_.fetch_and(~open);
    wait_until_empty();
  }

  // In the child of a fork: the workers do not exist, so none is inside.
  void abandon() noexcept { gate_.fetch_and(~count_mask); }

 private:
  // The gate: an epoch, whether it is open, and how many workers are inside.
  static constexpr std::uint32_t count_mask = 0x3ff;
  static constexpr std::uint32_t open = 0x400;
  static constexpr std::uint32_t one_epoch = 0x800;
  static_assert(max_threads - 1 <= count_mask);

  static std::uint32_t epoch(std::uint32_t gate) noexcept { return gate / one_epoch; }

  void work() noexcept {
    in_region = true;
    std::uint32_t seen = 0;
    for (;;) {
      std::uint32_t gate = next_gate(seen);
      if (stopping_.load()) return;
      seen = epoch(gate);
      while ((gate & open) && epoch(gate) == seen) {
        if (!gate_.compare_exchange_weak(gate, gate + 1)) continue;
        job_->adopt_modes();
        job_->run_chunks();
        leave();
        break;
      }
    }
  }

  // Waits for an epoch other than `seen`.
  std::uint32_t next_gate(std::uint32_t seen) noexcept {
    std::uint32_t gate = gate_.load();
    const auto changed = [&] {
      gate = gate_.load();
      return epoch(gate) != seen;
    };
    if (spin_until(changed)) return gate;
    while (epoch(gate) == seen) {
      gate_.wait(gate);
      gate = gate_.load();
    }
    return gate;
  }

  void leave() noexcept {
    const std::uint32_t previous = gate_.fetch_sub(1);
    if ((previous & open) == 0 && (previous & count_mask) == 1) {
      departures_.fetch_add(1);
      departures_.notify_one();
    }
  }

  void wait_until_empty() noexcept {
    const auto empty = [this] { return (gate_.load() & count_mask) == 0; };
    if (empty() || spin_until(empty)) return;
    for (;;) {
      const std::uint32_t seen = departures_.load();
      if (empty()) return;
      departures_.wait(seen);
    }
  }

  const int size_;
  std::vector<std::thread> workers_;
  Job* job_ = nullptr;  // valid while the gate is open or a worker is inside
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<std::uint32_t> gate_{0};
  alignas(64) std::atomic<std::uint32_t> departures_{0};
};

// The thread that sets `team_taken` owns `team`. Another thread that starts a region meanwhile runs it
// serially.
constinit std::atomic<bool> team_taken{false};
constinit Team* team = nullptr;
// In the child of a fork, the parent's team: its workers do not exist, so it can neither run nor be
// destroyed.
constinit Team* abandoned_team = nullptr;

void after_fork_in_child() noexcept {
  if (team != nullptr) {
    team->abandon();
    abandoned_team = team;
    team = nullptr;
  }
  team_taken.store(false);
}
[[maybe_unused]] const int forks_handled = pthread_atfork(nullptr, nullptr, after_fork_in_child);

// Resizes `team`, which the caller must own.
void resize_team(int size) {
  if (team != nullptr && team->size() == size) return;
  delete team;
  team = nullptr;
  team = new Team(size);
}

// Joins the workers at exit. `team_taken` stays set, so regions started by later destructors run serially. If
// exit() is called while another thread is in a region, the team is left alone.
struct TeamShutdown {
  ~TeamShutdown() {
    if (in_region || team_taken.exchange(true)) return;
    delete team;
    team = nullptr;
  }
} team_shutdown;

// Ownership of the team by a thread that runs a region, if the team is free.
class RegionOwner {
 public:
  RegionOwner() noexcept : owns_(!team_taken.exchange(true)) { in_region = owns_; }
  ~RegionOwner() {
    if (!owns_) return;
    in_region = false;
    team_taken.store(false);
  }
  RegionOwner(const RegionOwner&) = delete;
  RegionOwner& operator=(const RegionOwner&) = delete;

  bool owns() const noexcept { return owns_; }

 private:
  bool owns_;
};

}  // namespace

int num_threads() {
  const int n = requested_threads.load(std::memory_order_relaxed);
  if (n > 0) [[likely]]
    return n;
  const int first = detail::initial_threads();
  int none = 0;
  requested_threads.compare_exchange_strong(none, first);
  return requested_threads.load();
}

void set_num_threads(int n) {
  check(n >= 1 && n <= max_threads, "set_num_threads: {} is outside 1..{}", n, max_threads);
  requested_threads.store(n);
}

namespace detail {

constinit thread_local ThreadModes thread_modes;

int initial_threads() {
  if (const auto n = environment_threads("RILL_NUM_THREADS")) {
    check(*n > 0, "num_threads: RILL_NUM_THREADS is '{}'; set it to an integer from 1 to {}",
          std::getenv("RILL_NUM_THREADS"), max_threads);
    return *n;
  }
  // OMP_NUM_THREADS may also be a list for nested regions, which is ignored.
  if (const auto n = environment_threads("OMP_NUM_THREADS"); n && *n > 0) return *n;
  return std::min(usable_processors(), max_threads);
}

bool may_fork() { return !in_region && num_threads() > 1; }

void run_parallel(std::int64_t n, std::int64_t grain, ParallelBody body, void* context) {
  const int threads = num_threads();
  // A few chunks per thread balance the load; bounds on cache lines avoid false sharing.
  const std::int64_t max_chunks = std::int64_t{4} * threads;
  std::int64_t chunk_size = std::max({grain, (n - 1) / max_chunks + 1, std::int64_t{1}});
  if (chunk_size >= 1024) chunk_size = (chunk_size + 63) / 64 * 64;
  const std::int64_t chunks = (n - 1) / chunk_size + 1;

  RegionOwner owner;
  if (!owner.owns() || chunks == 1) return body(context, 0, n);
  resize_team(threads);
  Job job{.body = body,
          .context = context,
          .n = n,
          .chunk_size = chunk_size,
          .chunks = chunks,
          .float_mode = read_float_mode(),
          .thread_modes = thread_modes,
          .error = nullptr};
  team->run(job);
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace detail

FlushDenormals::FlushDenormals() noexcept : saved_(read_float_mode()) {
  if ((saved_ & flush_bits) != flush_bits) write_float_mode(saved_ | flush_bits);
}

FlushDenormals::~FlushDenormals() {
  const std::uint64_t now = read_float_mode();
  const std::uint64_t restored = (now & ~flush_bits) | (saved_ & flush_bits);
  if (now != restored) write_float_mode(restored);
}

}  // namespace rill
