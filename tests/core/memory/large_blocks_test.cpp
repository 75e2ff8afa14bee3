#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <rill/core/memory/large_blocks.h>

#include <support/child.h>

namespace {

using rill::memory::detail::LargeBlocks;
using rill::memory::detail::SystemCount;

constexpr std::size_t mib = std::size_t{1} << 20;

/// Large blocks in ranges of their own, with sizes in MiB.
struct Blocks {
  explicit Blocks(std::int64_t range = 256 * mib) : blocks(counted, range) {}
  ~Blocks() { blocks.trim(); }

  char* take(std::size_t n) { return static_cast<char*>(blocks.allocate(n * mib)); }
  void give(char* block, std::size_t n) { blocks.deallocate(block, n * mib); }
  std::int64_t held() const { return counted.bytes(); }

  SystemCount counted;
  LargeBlocks blocks;
};

/// The address space that this process has reserved.
std::int64_t reserved_bytes() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

TEST_CASE("large blocks: adjacent free blocks are merged") {
  Blocks pool;
  const std::vector<std::size_t> sizes{3, 5, 2};
  std::vector<std::size_t> order{0, 1, 2};
  do {
    std::vector<char*> blocks;
    for (std::size_t size : sizes) blocks.push_back(pool.take(size));
    char* after = pool.take(1);
    for (std::size_t i : order) pool.give(blocks[i], sizes[i]);
    const auto before = pool.counted.allocations();
    char* sum = pool.take(10);
    CHECK(sum == blocks[0]);
    CHECK(pool.counted.allocations() == before);
    pool.give(sum, 10);
    pool.give(after, 1);
  } while (std::ranges::next_permutation(order).found);
  CHECK(pool.held() == 11 * mib);
}

TEST_CASE("large blocks: the rest of a longer free block stays free") {
  Blocks pool;
  char* whole = pool.take(8);
  pool.take(1);
  pool.give(whole, 8);
  CHECK(pool.take(3) == whole);
  CHECK(pool.take(4) == whole + 3 * mib);
  CHECK(pool.blocks.cached() == 1 * mib);
  CHECK(pool.take(1) == whole + 7 * mib);
  CHECK(pool.held() == 9 * mib);
}

TEST_CASE("large blocks: the lowest free block that is long enough is taken") {
  Blocks pool;
  char* small = pool.take(2);
  pool.take(1);
  char* large = pool.take(5);
  pool.take(1);
  char* exact = pool.take(3);
  pool.take(1);
  pool.give(exact, 3);
  pool.give(small, 2);
  pool.give(large, 5);
  CHECK(pool.take(3) == large);
  CHECK(pool.take(1) == small);
  CHECK(pool.take(2) == large + 3 * mib);
  CHECK(pool.take(3) == exact);
  CHECK(pool.held() == 13 * mib);
}

TEST_CASE("large blocks: sizes are rounded up to whole pages") {
  Blocks pool;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  char* first = static_cast<char*>(pool.blocks.allocate(70 * page + 1));
  CHECK(pool.blocks.allocate(70 * page) == first + 71 * page);
  CHECK(pool.held() == static_cast<std::int64_t>(141 * page));
  pool.blocks.deallocate(first, 70 * page + 1);
  CHECK(pool.blocks.cached() == static_cast<std::int64_t>(71 * page));
  CHECK(pool.blocks.allocate(71 * page) == first);
}

TEST_CASE("large blocks: a free block that is too short is extended") {
  Blocks pool;
  char* block = pool.take(25);
  pool.give(block, 25);
  CHECK(pool.take(30) == block);
  CHECK(pool.held() == 30 * mib);
  CHECK(pool.counted.allocations() == 2);
}

TEST_CASE("large blocks: free memory above the limit is released, highest addresses first") {
  Blocks pool;
  char* low = pool.take(3);
  char* middle = pool.take(3);
  char* high = pool.take(3);
  pool.blocks.set_limit(4 * mib);
  pool.give(low, 3);
  pool.give(high, 3);
  CHECK(pool.blocks.cached() == 4 * mib);
  CHECK(pool.held() == 7 * mib);
  pool.give(middle, 3);
  CHECK(pool.held() == 4 * mib);
  const auto before = pool.counted.allocations();
  CHECK(pool.take(4) == low);
  CHECK(pool.counted.allocations() == before);
  pool.give(low, 4);
  pool.blocks.set_limit(1);  // less than a page
  CHECK(pool.held() == 0);
}

TEST_CASE("large blocks: trim releases all free memory and its contents") {
  Blocks pool;
  char* first = pool.take(2);
  char* second = pool.take(2);
  std::memset(first, 1, 2 * mib);
  std::memset(second, 2, 2 * mib);
  pool.give(first, 2);
  pool.blocks.trim();
  CHECK(pool.blocks.cached() == 0);
  CHECK(pool.held() == 2 * mib);
  CHECK(pool.take(2) == first);
  CHECK(std::count(first, first + 2 * mib, 0) == 2 * mib);
  CHECK(std::count(second, second + 2 * mib, 2) == 2 * mib);
  CHECK(pool.held() == 4 * mib);
}

TEST_CASE("large blocks: identical steps allocate nothing after the first") {
  Blocks pool;
  const auto step = [&] {
    std::mt19937 random(1);
    std::vector<std::pair<char*, std::size_t>> blocks;
    for (int i = 0; i < 300; ++i) {
      if (blocks.size() < 12 || random() % 2) {
        const std::size_t size = 1 + random() % 9;
        blocks.emplace_back(pool.take(size), size);
      }
      if (blocks.size() > 20) {
        const auto at = blocks.begin() + static_cast<std::ptrdiff_t>(random() % blocks.size());
        pool.give(at->first, at->second);
        blocks.erase(at);
      }
    }
    for (const auto& [block, size] : blocks) pool.give(block, size);
  };
  step();
  const auto before = pool.counted.allocations();
  for (int i = 0; i < 3; ++i) step();
  CHECK(pool.counted.allocations() == before);
  CHECK(pool.blocks.cached() == pool.held());
}

TEST_CASE("large blocks: a request that does not fit the range opens another") {
  Blocks pool(8 * mib);
  std::vector<char*> blocks;
  for (int i = 0; i < 3; ++i) {
    blocks.push_back(pool.take(6));
    std::memset(blocks.back(), i, 6 * mib);
  }
  blocks.push_back(pool.take(20));
  std::memset(blocks.back(), 3, 20 * mib);
  for (int i = 0; i < 4; ++i) {
    const auto at = static_cast<std::size_t>(i);
    CHECK(blocks[at][6 * mib - 1] == i);
    pool.give(blocks[at], i < 3 ? 6 : 20);
  }
  CHECK(pool.held() == 38 * mib);
}

TEST_CASE("large blocks: a request beyond the memory of the system changes nothing") {
  int overcommit = 1;
  std::ifstream("/proc/sys/vm/overcommit_memory") >> overcommit;
  std::vector<std::size_t> sizes{std::size_t{1} << 48, std::size_t{1} << 62};
  if (overcommit == 1) {
    MESSAGE("32 TiB not tested: the system overcommits memory");
  } else {
    sizes.push_back(std::size_t{1} << 45);
  }
  Blocks pool;
  char* before = pool.take(1);
  const std::int64_t reserved = reserved_bytes();
  for (std::size_t size : sizes) CHECK(pool.blocks.allocate(size) == nullptr);
  CHECK(reserved_bytes() - reserved < std::int64_t{1} << 40);
  CHECK(pool.held() == 1 * mib);
  CHECK(pool.take(1) == before + mib);
}

TEST_CASE("large blocks: concurrent threads take and give") {
  Blocks pool;
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<std::pair<char*, std::size_t>> blocks(6);
      for (int i = 0; i < 20000; ++i) {
        auto& [block, size] = blocks[random() % blocks.size()];
        if (block) {
          wrong[t] += block[0] != static_cast<char>(t) || block[size - 1] != static_cast<char>(t);
          pool.blocks.deallocate(block, size);
        }
        size = 1 + random() % (mib / 4);
        block = static_cast<char*>(pool.blocks.allocate(size));
        block[0] = block[size - 1] = static_cast<char>(t);
        if (i % 1000 == 999) pool.blocks.trim();
      }
      for (const auto& [block, size] : blocks) {
        if (block) pool.blocks.deallocate(block, size);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
  CHECK(pool.blocks.cached() == pool.held());
  pool.blocks.trim();
  CHECK(pool.held() == 0);
}

TEST_CASE("large blocks: a forked child with a limited address space has its own blocks") {
  Blocks pool(std::int64_t{64} << 30);
  char* shared = pool.take(1);
  std::memset(shared, 1, mib);
  const int status = test::status_in_child([&] {
    const auto used = static_cast<rlim_t>(reserved_bytes());
    const rlimit limit{used + 1024 * mib, used + 1024 * mib};
    bool good = ::setrlimit(RLIMIT_AS, &limit) == 0;
    Blocks own(std::int64_t{64} << 30);  // more than the limit allows
    for (int i = 0; i < 3; ++i) {
      char* block = own.take(200);
      good = good && block && (i > 0 || reserved_bytes() < static_cast<std::int64_t>(used + 300 * mib));
      if (block) block[200 * mib - 1] = 1;
    }
    good = good && own.take(900) == nullptr;
    std::memset(shared, 2, mib);
    return good ? 0 : 1;
  });
  CHECK(status == 0);
  CHECK(std::count(shared, shared + mib, 1) == mib);
}
