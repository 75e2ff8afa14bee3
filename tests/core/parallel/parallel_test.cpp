#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rill/core/error.h>
#include <rill/core/parallel.h>
#include <rill/core/parallel/processors.h>

#include <support/child.h>
#include <support/threads.h>

namespace rill {
namespace {

using test::count_on_threads;
using test::status_in_child;
using test::Threads;

// How often parallel_for visits each element of [0, n).
std::vector<int> visits(std::int64_t n, std::int64_t grain) {
  std::vector<int> count(static_cast<std::size_t>(n));
  parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) ++count[static_cast<std::size_t>(i)];
  });
  return count;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// A temporary root directory, removed at the end of the test.
class FakeRoot {
 public:
  FakeRoot() : path_(std::filesystem::temp_directory_path() / ("rill_root_" + std::to_string(getpid()))) {}
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  void add(const std::string& file, const std::string& text) const { write_file(path_ / file, text); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// Sets an environment variable, or removes it, for one test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// Whether arithmetic on this thread keeps denormals.
bool keeps_denormals() {
  volatile float x = 1e-40f;
  volatile float y = x * 0.5f;
  return y != 0.0f;
}

}  // namespace

TEST_CASE("parallel_for: every element is visited once for any size, grain and number of threads") {
  for (const int threads : {1, 2, 3, 8}) {
    const Threads scope(threads);
    for (const std::int64_t n : {1, 2, 3, 7, 64, 1000, 100000}) {
      for (const std::int64_t grain : {1, 3, 64, 5000, 1000000}) {
        CAPTURE(threads);
        CAPTURE(n);
        CAPTURE(grain);
        REQUIRE(visits(n, grain) == std::vector<int>(static_cast<std::size_t>(n), 1));
      }
    }
  }
}

TEST_CASE("parallel_for: an empty range makes no call") {
  const Threads scope(2);
  int calls = 0;
  parallel_for(0, 1, [&](std::int64_t, std::int64_t) { ++calls; });
  parallel_for(-5, 1, [&](std::int64_t, std::int64_t) { ++calls; });
  CHECK(calls == 0);
}

TEST_CASE("parallel_for: a grain of zero or less counts as one") {
  const Threads scope(2);
  CHECK(visits(10, 0) == std::vector<int>(10, 1));
  CHECK(visits(10, -3) == std::vector<int>(10, 1));
}

TEST_CASE("parallel_for: only the last chunk may be shorter than the grain") {
  const Threads scope(4);
  std::atomic<bool> too_short{false};
  parallel_for(1000, 90, [&](std::int64_t begin, std::int64_t end) {
    if (end - begin < 90 && end != 1000) too_short = true;
  });
  CHECK_FALSE(too_short);
}

TEST_CASE("parallel_for: chunks run on the requested number of threads") {
  const Threads scope(4);
  CHECK(count_on_threads(4, [] { return true; }) == 4);
}

TEST_CASE("parallel_for: with one thread or little work all runs on the caller's thread") {
  const auto self = std::this_thread::get_id();
  std::atomic<bool> elsewhere{false};
  const auto look = [&](std::int64_t, std::int64_t) {
    if (std::this_thread::get_id() != self) elsewhere = true;
  };
  {
    const Threads scope(1);
    parallel_for(1000, 1, look);
  }
  const Threads scope(4);
  parallel_for(1000, 1000, look);
  CHECK_FALSE(elsewhere);
}

TEST_CASE("parallel_for: a nested loop runs undivided on the thread that calls it") {
  const Threads scope(3);
  std::atomic<std::int64_t> total{0};
  std::atomic<bool> split{false};
  parallel_for(6, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      parallel_for(100, 1, [&](std::int64_t from, std::int64_t to) {
        if (to - from != 100) split = true;
        total += to - from;
      });
    }
  });
  CHECK(total == 600);
  CHECK_FALSE(split);
}

TEST_CASE("parallel_for: an exception reaches the caller and the team stays usable") {
  const Threads scope(3);
  for (int round = 0; round < 50; ++round) {
    const auto fail_at_seven = [](std::int64_t begin, std::int64_t end) {
      if (begin <= 7 && 7 < end) throw std::runtime_error("seven");
    };
    CHECK_THROWS_WITH_AS(parallel_for(40, 1, fail_at_seven), "seven", std::runtime_error);
    CHECK(visits(40, 1) == std::vector<int>(40, 1));
  }
}

TEST_CASE("parallel_for: concurrent callers do not interfere") {
  const Threads scope(3);
  std::vector<std::thread> users;
  std::atomic<int> wrong{0};
  for (int user = 0; user < 4; ++user) {
    users.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        if (visits(64, 1) != std::vector<int>(64, 1)) ++wrong;
      }
    });
  }
  for (std::thread& user : users) user.join();
  CHECK(wrong == 0);
}

TEST_CASE("parallel_for: thousands of short regions with changing numbers of threads") {
  const Threads scope(2);
  std::int64_t total = 0;
  for (int round = 0; round < 3000; ++round) {
    if (round % 500 == 0) set_num_threads(2 + round / 500);
    std::atomic<std::int64_t> sum{0};
    parallel_for(8, 1, [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
    total += sum;
  }
  CHECK(total == 3000 * 8);
}

TEST_CASE("parallel_for: a sleeping team wakes up") {
  const Threads scope(4);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    CHECK(visits(256, 1) == std::vector<int>(256, 1));
  }
}

#if !defined(__SANITIZE_THREAD__)  // which cannot start threads after a fork
TEST_CASE("parallel_for: works in a forked child and in a child of that") {
  const Threads scope(3);
  REQUIRE(visits(64, 1) == std::vector<int>(64, 1));  // the team exists
  const auto whole = [] { return visits(64, 1) == std::vector<int>(64, 1); };
  const auto grandchild = [&] { return status_in_child([&] { return whole() ? 7 : 1; }); };
  const int status = status_in_child([&] { return whole() && grandchild() == 7 && whole() ? 3 : 1; });
  CHECK(status == 3);
  CHECK(whole());
}

TEST_CASE("parallel_for: works in a child forked while another thread is in a region") {
  const Threads scope(2);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) visits(64, 1);
  });
  for (int round = 0; round < 20; ++round) {
    CHECK(status_in_child([] { return visits(64, 1) == std::vector<int>(64, 1) ? 3 : 1; }) == 3);
  }
  stop = true;
  other.join();
}
#endif

TEST_CASE("parallel_for: workers block all signals but the synchronous ones and SIGPROF") {
  const Threads scope(3);
  const auto self = std::this_thread::get_id();
  const auto workers_that_block = [&](int signal) {
    return count_on_threads(3, [&] {
      sigset_t blocked;
      return std::this_thread::get_id() != self && pthread_sigmask(SIG_BLOCK, nullptr, &blocked) == 0 &&
             sigismember(&blocked, signal) == 1;
    });
  };
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPROF}) CHECK(workers_that_block(signal) == 0);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD})
    CHECK(workers_that_block(signal) == 2);
}

// Sanitizers need threads of their own.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST_CASE("parallel_for: works with fewer threads if the system grants no more") {
  const int status = status_in_child([] {
    const rlimit none{1, 1};  // does not bind root
    if ((::geteuid() == 0 && ::setuid(65534) != 0) || ::setrlimit(RLIMIT_NPROC, &none) != 0) return 2;
    set_num_threads(4);
    for (int round = 0; round < 3; ++round) {
      if (visits(100, 1) != std::vector<int>(100, 1)) return 1;
    }
    return 3;
  });
  if (status == 2) {
    std::puts("skipped: this user may not limit its processes");
  } else {
    CHECK(status == 3);
  }
}
#endif

TEST_CASE("set_num_threads: a value outside 1..1024 is an error that names it") {
  CHECK_THROWS_WITH_AS(set_num_threads(0), "set_num_threads: 0 is outside 1..1024", Error);
  CHECK_THROWS_WITH_AS(set_num_threads(-2), "set_num_threads: -2 is outside 1..1024", Error);
  CHECK_THROWS_WITH_AS(set_num_threads(1025), "set_num_threads: 1025 is outside 1..1024", Error);
  const Threads scope(5);
  CHECK(num_threads() == 5);
}

TEST_CASE("num_threads: set by environment variables, RILL_NUM_THREADS first") {
  const Variable openmp("OMP_NUM_THREADS", "3");
  {
    const Variable none("RILL_NUM_THREADS", nullptr);
    CHECK(detail::initial_threads() == 3);
    const Variable list("OMP_NUM_THREADS", "4,2");
    CHECK(detail::initial_threads() == usable_processors());
  }
  const Variable empty("RILL_NUM_THREADS", "");
  CHECK(detail::initial_threads() == 3);
  const Variable seven("RILL_NUM_THREADS", "7");
  CHECK(detail::initial_threads() == 7);
}

TEST_CASE("num_threads: an invalid RILL_NUM_THREADS is an error that names it") {
  for (const std::string value : {"0", "-1", "1025", "two", "2 ", "2.5", "99999999999"}) {
    const Variable variable("RILL_NUM_THREADS", value.c_str());
    const std::string message =
        "num_threads: RILL_NUM_THREADS is '" + value + "'; set it to an integer from 1 to 1024";
    CHECK_THROWS_WITH_AS(detail::initial_threads(), message.c_str(), Error);
  }
}

TEST_CASE("usable_processors: at least one and no more than the machine has") {
  CHECK(usable_processors() >= 1);
  CHECK(usable_processors() <= static_cast<int>(std::thread::hardware_concurrency()));
}

TEST_CASE("cgroup_processors: the tightest quota of the group and its ancestors, rounded up") {
  const FakeRoot root;
  CHECK(cgroup_processors(root.path()) == 0);
  root.add("proc/self/cgroup", "0::/user/job\n");
  CHECK(cgroup_processors(root.path()) == 0);
  root.add("sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
  CHECK(cgroup_processors(root.path()) == 0);
  root.add("sys/fs/cgroup/user/cpu.max", "350000 100000\n");
  CHECK(cgroup_processors(root.path()) == 4);
  root.add("sys/fs/cgroup/user/job/cpu.max", "150000 100000\n");
  CHECK(cgroup_processors(root.path()) == 2);
  root.add("sys/fs/cgroup/cpu.max", "50000 100000\n");
  CHECK(cgroup_processors(root.path()) == 1);
}

TEST_CASE("cgroup_processors: version 1, with the controllers mounted together") {
  const FakeRoot root;
  root.add("proc/self/cgroup", "5:cpuset:/other\n4:cpu,cpuacct:/docker/abc\nnonsense\n1:name=systemd:/x\n");
  root.add("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  root.add("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  CHECK(cgroup_processors(root.path()) == 0);
  root.add("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "250000\n");
  root.add("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
  CHECK(cgroup_processors(root.path()) == 3);
}

#if defined(__x86_64__) || defined(__aarch64__)
TEST_CASE("FlushDenormals: flushes within its scope and restores the previous setting") {
  REQUIRE(keeps_denormals());
  {
    const FlushDenormals outer;
    CHECK_FALSE(keeps_denormals());
    {
      const FlushDenormals inner;
      CHECK_FALSE(keeps_denormals());
    }
    CHECK_FALSE(keeps_denormals());
  }
  CHECK(keeps_denormals());
}

TEST_CASE("FlushDenormals: workers take over the caller's setting in each region") {
  const Threads scope(4);
  const auto keepers = [] { return count_on_threads(4, keeps_denormals); };
  CHECK(keepers() == 4);
  {
    const FlushDenormals flush;
    CHECK(keepers() == 0);
  }
  CHECK(keepers() == 4);
}
#endif

}  // namespace rill
