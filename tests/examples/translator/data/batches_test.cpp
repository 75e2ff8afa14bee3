#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include <rill/core/error.h>
#include <translator/data/batches.h>

using translator::Batch;
using translator::batches;
using translator::PairLength;
using translator::shuffled_batches;

namespace {

std::vector<PairLength> random_lengths(std::size_t n) {
  rill::Rng rng(11);
  std::vector<PairLength> lengths;
  for (std::size_t i = 0; i < n; ++i) {
    lengths.push_back({1 + rng.below(30), 1 + rng.below(30)});
  }
  return lengths;
}

std::vector<std::size_t> flat(const std::vector<Batch>& all) {
  std::vector<std::size_t> positions;
  for (const Batch& batch : all) {
    positions.insert(positions.end(), batch.begin(), batch.end());
  }
  return positions;
}

bool is_permutation(std::vector<std::size_t> positions, std::size_t n) {
  std::sort(positions.begin(), positions.end());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] != i) {
      return false;
    }
  }
  return positions.size() == n;
}

/// Target places, padding included, for one real place.
double padded_share(const std::vector<Batch>& all, const std::vector<PairLength>& lengths) {
  double real = 0, padded = 0;
  for (const Batch& batch : all) {
    std::size_t longest = 0;
    for (const std::size_t i : batch) {
      real += static_cast<double>(lengths[i].target);
      longest = std::max(longest, lengths[i].target);
    }
    padded += static_cast<double>(longest * batch.size());
  }
  return padded / real;
}

}  // namespace

TEST_CASE("batches: in order of target length, then source length, then position") {
  const std::vector<PairLength> lengths = {{3, 5}, {2, 4}, {1, 5}, {9, 1}, {2, 4}};
  CHECK(batches(lengths, 2) == std::vector<Batch>{{3, 1}, {4, 2}, {0}});
  CHECK(batches(lengths, 100) == std::vector<Batch>{{3, 1, 4, 2, 0}});
  CHECK(batches({}, 3).empty());
}

TEST_CASE("batches: every sentence once, whatever the size") {
  rill::Rng rng(1);
  for (const std::size_t n : {0, 1, 63, 64, 65, 1000, 7001}) {
    const auto lengths = random_lengths(n);
    for (const std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{64}, ~std::size_t{0}}) {
      if (n <= 1000 || size >= 7) {
        const auto all = shuffled_batches(lengths, size, rng);
        CHECK(is_permutation(flat(all), n));
        CHECK(is_permutation(flat(batches(lengths, size)), n));
        CHECK(std::all_of(all.begin(), all.end(),
                          [&](const Batch& b) { return !b.empty() && b.size() <= size; }));
      }
    }
  }
}

TEST_CASE("batches: shuffled ones hold sentences of like length in random order") {
  const auto lengths = random_lengths(20000);
  rill::Rng a(1), b(1), c(2);
  const auto first = shuffled_batches(lengths, 32, a);
  CHECK(first == shuffled_batches(lengths, 32, b));
  CHECK(first != shuffled_batches(lengths, 32, c));
  CHECK(first != shuffled_batches(lengths, 32, a));  // the next epoch
  CHECK(padded_share(first, lengths) < 1.05);
  CHECK(padded_share(batches(lengths, 32), lengths) < 1.01);
  // The batches themselves are not in order of length.
  int falls = 0;
  for (std::size_t i = 1; i < first.size(); ++i) {
    falls += lengths[first[i][0]].target < lengths[first[i - 1][0]].target ? 1 : 0;
  }
  CHECK(falls > static_cast<int>(first.size()) / 4);
}

TEST_CASE("batches: a size of 0 is an error") {
  rill::Rng rng(1);
  CHECK_THROWS_AS(batches({}, 0), rill::Error);
  CHECK_THROWS_AS(shuffled_batches({}, 0, rng), rill::Error);
}
