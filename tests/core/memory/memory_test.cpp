#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <rill/core/core.h>
#include <rill/core/memory.h>

#include <support/child.h>

namespace memory = rill::memory;
using rill::Tensor;

TEST_CASE("memory: repeated steps allocate nothing from the system") {
  const auto work = [] {
    Tensor x = rill::ones({64, 64}).set_requires_grad();
    Tensor y = rill::sum(rill::tanh(rill::matmul(x, x)));
    y.backward();
    return y.item();
  };
  for (int i = 0; i < 3; ++i) work();
#if !defined(__SANITIZE_ADDRESS__)
  const auto before = memory::stats();
  for (int i = 0; i < 20; ++i) work();
  const auto after = memory::stats();
  CHECK(after.system_allocations == before.system_allocations);
  CHECK(after.live_bytes == before.live_bytes);
#endif
  memory::trim();
  CHECK(memory::stats().live_bytes >= 0);
}

TEST_CASE("memory: the cache limit applies to large blocks") {
  memory::trim();
  memory::set_cache_limit(0);
  const auto before = memory::stats().cached_bytes;
  rill::empty({1 << 20});
  CHECK(memory::stats().cached_bytes <= before + 4096);
  memory::set_cache_limit(std::int64_t{4} << 30);
}

TEST_CASE("memory: blocks are aligned, disjoint and writable to the last byte") {
  const auto live = memory::stats().live_bytes;
  const std::vector<std::size_t> sizes{1, 64, 65, 4097, 262144, 262145, 266240, 266241, 1048576, 5000001};
  std::vector<unsigned char*> blocks;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    blocks.push_back(static_cast<unsigned char*>(memory::allocate(sizes[i])));
    CHECK(reinterpret_cast<std::uintptr_t>(blocks[i]) % 64 == 0);
    std::memset(blocks[i], static_cast<int>(i + 1), sizes[i]);
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    CHECK(blocks[i][0] == i + 1);
    CHECK(std::memcmp(blocks[i], blocks[i] + 1, sizes[i] - 1) == 0);
    memory::deallocate(blocks[i], sizes[i]);
  }
  CHECK(memory::stats().live_bytes == live);
}

TEST_CASE("memory: large blocks may be freed on another thread") {
  const auto live = memory::stats().live_bytes;
  std::vector<Tensor> tensors(8);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    threads.emplace_back([&tensors, t] {
      for (int round = 0; round < 50; ++round) tensors[t] = rill::full({100000 + 1000 * round}, double(t));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < tensors.size(); ++t)
    CHECK(rill::sum(tensors[t]).item() == 149000.0 * double(t));
  tensors.clear();
  CHECK(memory::stats().live_bytes == live);
}

#if !defined(__SANITIZE_ADDRESS__)
namespace {
std::int64_t allocations() { return memory::stats().system_allocations; }
Tensor mebibytes(std::int64_t n) { return rill::empty({n << 20}, rill::boolean); }
}  // namespace

TEST_CASE("memory: a failed allocation is an error and leaves the allocator usable") {
  const Tensor before = rill::ones({1 << 20});
  CHECK_THROWS_WITH_AS(memory::allocate(std::size_t{1} << 48),
                       doctest::Contains("memory: cannot allocate 281474976710656 bytes ("), rill::Error);
  CHECK_THROWS_WITH_AS(memory::allocate(SIZE_MAX),
                       "memory: 18446744073709551615 bytes exceed the address space", rill::Error);
  CHECK(rill::sum(before).item() == 1 << 20);
  CHECK(rill::sum(rill::ones({1 << 20})).item() == 1 << 20);
}

TEST_CASE("memory: a larger block reuses the memory of a smaller one") {
  memory::trim();
  const std::int64_t held = memory::stats().system_bytes;
  mebibytes(25);
  mebibytes(30);
  CHECK(memory::stats().system_bytes - held <= std::int64_t{31} << 20);
  memory::trim();
  CHECK(memory::stats().system_bytes <= held);
}

TEST_CASE("memory: a thread's cache above its limit is drained to half") {
  memory::trim();
  const std::int64_t held = memory::stats().cached_bytes, mib = 1 << 20;
  std::vector<void*> blocks(800);
  for (void*& block : blocks) block = memory::allocate(1 << 18);
  std::int64_t most = 0, least_after = 128 * mib;
  for (void* block : blocks) {
    memory::deallocate(block, 1 << 18);
    const std::int64_t cached = memory::stats().cached_bytes - held;
    most = std::max(most, cached);
    if (most > 127 * mib) least_after = std::min(least_after, cached);
  }
  CHECK(most <= 128 * mib);
  CHECK(least_after >= 64 * mib);
  memory::trim();
  CHECK(memory::stats().cached_bytes <= held);
}

TEST_CASE("memory: identical steps allocate nothing after the first, whatever their block sizes") {
  memory::trim();
  const auto step = [&] {
    std::vector<Tensor> parameters;
    for (int i = 0; i < 8; ++i) parameters.push_back(mebibytes(10));
    mebibytes(21);
    mebibytes(9);
  };
  step();
  const auto few = [&] {  // never live at the same time
    mebibytes(100);
    mebibytes(12);
    mebibytes(5);
  };
  SUBCASE("many blocks") {
    step();
    const auto before = allocations();
    for (int i = 0; i < 3; ++i) step();
    CHECK(allocations() == before);
  }
  SUBCASE("few blocks") {
    few();
    const auto before = allocations();
    for (int i = 0; i < 3; ++i) few();
    CHECK(allocations() == before);
  }
}

TEST_CASE("memory: blocks of sizes used once do not accumulate") {
  memory::trim();
  const std::int64_t held = memory::stats().system_bytes;
  std::int64_t largest = 0;
  for (std::int64_t n = 1 << 19; n < 1 << 27; n += n / 3) {
    rill::empty({n});
    largest = 4 * n;
  }
  CHECK(memory::stats().system_bytes - held <= largest + (1 << 20));
}
#endif

// ThreadSanitizer cannot start threads after a fork, and AddressSanitizer does not hold its locks across one.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST_CASE("memory: a child forked while other threads allocate can allocate") {
  const auto work = [] {
    const Tensor large = rill::ones({1 << 18}), square = rill::ones({8, 8});
    std::thread([] { rill::ones({1 << 17}); }).join();
    return rill::sum(large).item() + rill::sum(rill::matmul(square, square)).item();
  };
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      while (!stop) work();
    });
  }
  int good = 0;
  const auto in_child = [&] {
    const bool right = work() == (1 << 18) + 512 && memory::stats().live_bytes >= 0;
    memory::trim();
    return right ? 3 : 1;
  };
  while (good < 100 && test::status_in_child(in_child) == 3) ++good;
  CHECK(good == 100);
  stop = true;
  for (std::thread& other : others) other.join();
}
#endif
