#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include <rill/core/error.h>
#include <rill/core/random.h>

namespace rill {
namespace {

using Words = std::array<std::uint32_t, 4>;

// |count - n p| in standard deviations of the number of successes in n trials of probability p.
double deviations(double count, double n, double p) {
  return std::abs(count - n * p) / std::sqrt(n * p * (1 - p));
}

std::vector<float> mask(std::uint64_t call, std::int64_t begin, std::int64_t end, double keep = 0.75) {
  std::vector<float> out(static_cast<std::size_t>(end - begin));
  bernoulli_mask(3, 4, call, begin, end, keep, 2.0f, out.data());
  return out;
}

}  // namespace

TEST_CASE("philox: matches the known answers of Random123") {
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(philox({ones, ones, ones, ones}, {ones, ones}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("Rng: a block of philox, with the seed as key and the stream in the counter, gives two draws") {
  Rng rng(0x1122334455667788, 0x99aabbccddeeff00);
  for (std::uint32_t block = 0; block < 3; ++block) {
    const Words w = philox({block, 0, 0xddeeff00, 0x99aabbcc}, {0x55667788, 0x11223344});
    CHECK(rng.next() == (std::uint64_t{w[1]} << 32 | w[0]));
    CHECK(rng.next() == (std::uint64_t{w[3]} << 32 | w[2]));
  }
}

// These values are part of the interface, the same for every compiler, processor and version of rill.
TEST_CASE("Rng: the published values") {
  Rng rng(42);
  CHECK(rng.next() == 0x77f5493b9ceaf053);
  CHECK(rng.next() == 0x5742b3d712bf50ad);
  CHECK(rng.next() == 0x53ba6cfdfcdb2127);
  Rng far(0);
  far.set_state({.seed = 2024, .stream = 5, .counter = std::uint64_t{1000000007} << 10});
  CHECK(far.next() == 0xc68782708eef7460);
  CHECK(far.next() == 0xda6fc25c154b6e50);

  Rng normals(7);
  CHECK(normals.normal() == 0x1.4d586bf318c2fp-1);
  CHECK(normals.normal() == 0x1.4e7654a935a2dp-1);
  CHECK(normals.normal() == 0x1.cb99a6f92cee4p+0);
  CHECK(normals.normal() == 0x1.11ab5691df3ecp+0);
  CHECK(normals.normal() == -0x1.1beefabc5c758p-3);
  CHECK(normals.normal() == -0x1.2192671fc85f6p-2);
  CHECK(normals.uniform() == 0x1.df3cea8b35f86p-2);

  std::array<double, 4> scaled{};
  Rng(1).fill_normal(scaled.data(), 4, 1.0, 0.02);
  CHECK(scaled ==
        std::array{0x1.fed5fe82dc0c3p-1, 0x1.fd0b76bf675f6p-1, 0x1.04e24ed8c9c36p+0, 0x1.0c6cc5f05486fp+0});
  std::array<float, 4> small{};
  Rng(1).fill_uniform(small.data(), 4, -0.1, 0.1);
  CHECK(small == std::array{0x1.435362p-4f, 0x1.5a244p-5f, 0x1.3278f6p-4f, 0x1.ff84d4p-6f});

  CHECK(Rng(5).permutation(10) == std::vector<std::int64_t>{4, 8, 1, 2, 3, 7, 5, 0, 6, 9});
  CHECK(mask(5, 6, 17) == std::vector<float>{2, 2, 2, 2, 2, 2, 0, 2, 0, 0, 2});
  Rng parent(123);
  CHECK(parent.split().next() == 0x5aceaf4279abfddc);
  CHECK(parent.next() == 0x7d401eada3c0144e);
}

TEST_CASE("Rng: normal matches the Box-Muller transform to the last digits") {
  Rng rng(9);
  Rng draws(9);
  long double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const long double u = static_cast<long double>((draws.next() >> 11) + 1) * 0x1p-53L;
    const long double v = static_cast<long double>(draws.next() >> 11) * 0x1p-53L;
    const long double exact = std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979323846264338L * v);
    worst = std::max(worst, std::abs(rng.normal() - exact));
  }
  CHECK(worst < 4e-15L);
}

TEST_CASE("Rng: a saved state resumes at any draw") {
  Rng rng(11, 2);
  for (int drawn = 0; drawn < 5; ++drawn) {
    Rng resumed(0);
    resumed.set_state(rng.state());
    Rng ahead = rng;
    for (int i = 0; i < 4; ++i) CHECK(resumed.next() == ahead.next());
    CHECK(resumed.state() == ahead.state());
    rng.next();
  }
  CHECK(rng.state() == RngState{.seed = 11, .stream = 2, .counter = 5});
}

TEST_CASE("Rng: a fill equals single draws, from even and odd positions") {
  for (const int skip : {0, 1}) {
    for (const std::int64_t n : {0, 1, 7, 64, 101}) {
      Rng one(77);
      Rng other(77);
      if (skip) one.next();
      if (skip) other.next();
      std::vector<double> filled(static_cast<std::size_t>(n));
      one.fill_normal(filled.data(), n, 3.0, 2.0);
      for (const double x : filled) CHECK(x == 3.0 + 2.0 * other.normal());
      one.fill_uniform(filled.data(), n, 0.0, 1.0);
      for (const double x : filled) CHECK(x == other.uniform());
      CHECK(one.state() == other.state());
    }
  }
}

TEST_CASE("Rng: uniform values cover [0, 1) evenly") {
  Rng rng(1);
  constexpr int n = 200000;
  std::array<int, 16> bins{};
  for (int i = 0; i < n; ++i) {
    const double x = rng.uniform();
    REQUIRE((x >= 0 && x < 1));
    ++bins[static_cast<std::size_t>(x * 16)];
  }
  for (const int count : bins) CHECK(deviations(count, n, 1.0 / 16) < 5);
}

TEST_CASE("Rng: normal values have the moments and tails of the normal distribution") {
  Rng rng(2);
  constexpr int n = 200000;
  std::vector<double> x(n);
  rng.fill_normal(x.data(), n, 0, 1);
  double mean = 0;
  double square = 0;
  double fourth = 0;
  int beyond_two = 0;
  for (const double v : x) {
    mean += v / n;
    square += v * v / n;
    fourth += v * v * v * v / n;
    beyond_two += std::abs(v) > 2;
  }
  CHECK(std::abs(mean) < 5 / std::sqrt(n));
  CHECK(std::abs(square - 1) < 5 * std::sqrt(2.0 / n));
  CHECK(std::abs(fourth - 3) < 5 * std::sqrt(96.0 / n));
  CHECK(deviations(beyond_two, n, 0.0455002639) < 5);
}

TEST_CASE("Rng: below is unbiased, even where n does not divide 2^64") {
  Rng rng(3);
  constexpr int n = 60000;
  std::array<int, 6> counts{};
  for (int i = 0; i < n; ++i) ++counts[rng.below(6)];
  for (const int count : counts) CHECK(deviations(count, n, 1.0 / 6) < 5);
  // A plain remainder modulo 3 * 2^62 would put half of the draws in the lowest third.
  const std::uint64_t third = std::uint64_t{1} << 62;
  int low = 0;
  for (int i = 0; i < n; ++i) low += rng.below(3 * third) < third;
  CHECK(deviations(low, n, 1.0 / 3) < 5);
  CHECK(rng.below(1) == 0);
  CHECK_THROWS_WITH_AS(rng.below(0), "Rng::below: n is 0; it must be at least 1", Error);
}

TEST_CASE("Rng: bernoulli is true with probability p, never for 0, always for 1") {
  Rng rng(4);
  int hits = 0;
  constexpr int n = 50000;
  for (int i = 0; i < n; ++i) {
    REQUIRE_FALSE(rng.bernoulli(0));
    REQUIRE(rng.bernoulli(1));
    hits += rng.bernoulli(0.3);
  }
  CHECK(deviations(hits, n, 0.3) < 5);
}

TEST_CASE("Rng: streams and children differ from each other and from their parent") {
  Rng rng(5);
  Rng twin(5);
  Rng child = rng.split();
  Rng sibling = rng.split();
  CHECK(child.state() == twin.split().state());
  std::set<std::uint64_t> seen;
  Rng stream(5, 1);
  for (int i = 0; i < 1000; ++i) {
    for (Rng* r : {&rng, &child, &sibling, &stream}) seen.insert(r->next());
  }
  CHECK(seen.size() == 4000);
}

TEST_CASE("Rng: permutation is valid, and every order equally likely") {
  Rng rng(6);
  CHECK(rng.permutation(0).empty());
  auto order = rng.permutation(1000);
  CHECK_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::int64_t i = 0; i < 1000; ++i) REQUIRE(order[static_cast<std::size_t>(i)] == i);
  std::array<int, 6> counts{};
  constexpr int n = 30000;
  for (int i = 0; i < n; ++i) {
    const auto p = rng.permutation(3);
    ++counts[static_cast<std::size_t>(p[0] * 2 + (p[1] > p[2]))];
  }
  for (const int count : counts) CHECK(deviations(count, n, 1.0 / 6) < 5);
  CHECK_THROWS_WITH_AS(rng.permutation(-1), "Rng::permutation: length -1 is negative", Error);
}

TEST_CASE("Rng: invalid intervals and standard deviations are errors") {
  Rng rng(7);
  float x = 0;
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(rng.fill_uniform(&x, 1, 1, 0), Error);
  CHECK_THROWS_AS(rng.fill_uniform(&x, 1, 0, infinity), Error);
  CHECK_THROWS_AS(rng.fill_uniform(&x, 1, std::nan(""), 1), Error);
  CHECK_THROWS_AS(rng.fill_normal(&x, 1, 0, -1), Error);
  CHECK_THROWS_AS(rng.fill_normal(&x, 1, infinity, 1), Error);
  CHECK_THROWS_AS(rng.fill_normal(&x, 1, 0, std::nan("")), Error);
}

TEST_CASE("Rng: a uniform float stays below the upper bound even where it would round to it") {
  Rng rng(8);
  std::vector<float> x(100000);
  rng.fill_uniform(x.data(), static_cast<std::int64_t>(x.size()), 1.0, 1.0 + 0x1p-22);
  for (const float v : x) REQUIRE((v >= 1.0f && v < 1.0f + 0x1p-22f));
  rng.fill_uniform(x.data(), 3, 0.5, 0.5);
  CHECK(x[1] == 0.5f);
}

TEST_CASE("bernoulli_mask: any range equals that range of the whole mask") {
  const std::vector<float> whole = mask(0, 0, 203);
  for (std::int64_t begin = 0; begin < 12; ++begin) {
    for (std::int64_t end = begin; end < 203; end += 5) {
      REQUIRE(mask(0, begin, end) == std::vector<float>(whole.begin() + begin, whole.begin() + end));
    }
  }
  const std::int64_t far = (std::int64_t{1} << 34) - 10;  // the block index crosses 2^32
  const std::vector<float> border = mask(0, far, far + 20);
  CHECK(mask(0, far + 10, far + 20) == std::vector<float>(border.begin() + 10, border.end()));
}

TEST_CASE("bernoulli_mask: keeps the requested fraction, all or none at the ends, differently in each call") {
  constexpr std::int64_t n = 100000;
  const std::vector<float> some = mask(0, 0, n);
  CHECK(deviations(static_cast<double>(std::count(some.begin(), some.end(), 2.0f)), n, 0.75) < 5);
  CHECK(std::count(some.begin(), some.end(), 0.0f) + std::count(some.begin(), some.end(), 2.0f) == n);
  CHECK(mask(0, 0, n, 1.0) == std::vector<float>(n, 2.0f));
  CHECK(mask(0, 0, n, 0.0) == std::vector<float>(n, 0.0f));
  const std::vector<float> next = mask(1, 0, n);
  double agree = 0;
  for (std::size_t i = 0; i < some.size(); ++i) agree += some[i] == next[i];
  CHECK(deviations(agree, n, 0.75 * 0.75 + 0.25 * 0.25) < 5);
}

}  // namespace rill
