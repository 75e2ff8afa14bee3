#include <translator/data/batches.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include <rill/core/error.h>

namespace translator {
namespace {

constexpr std::size_t pool_batches = 100;  // of how many batches the sentences are ordered by length

void sort_by_length(std::span<std::size_t> positions, std::span<const PairLength> lengths) {
  std::stable_sort(positions.begin(), positions.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(lengths[a].target, lengths[a].source) < std::pair(lengths[b].target, lengths[b].source);
  });
}

void cut(std::span<const std::size_t> positions, std::size_t size, std::vector<Batch>& into) {
  for (std::size_t i = 0; i < positions.size(); i += size) {
    const auto part = positions.subspan(i, std::min(size, positions.size() - i));
    into.emplace_back(part.begin(), part.end());
  }
}

std::vector<std::size_t> all_positions(std::span<const PairLength> lengths, std::size_t size) {
  rill::check(size > 0, "batches: the size of a batch is 0; it must be 1 or more");
  std::vector<std::size_t> positions(lengths.size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  return positions;
}

}  // namespace

std::vector<Batch> batches(std::span<const PairLength> lengths, std::size_t size) {
  std::vector<std::size_t> positions = all_positions(lengths, size);
  sort_by_length(positions, lengths);
  std::vector<Batch> all;
  cut(positions, size, all);
  return all;
}

std::vector<Batch> shuffled_batches(std::span<const PairLength> lengths, std::size_t size, rill::Rng& rng) {
  std::vector<std::size_t> positions = all_positions(lengths, size);
  rng.shuffle(positions);
  std::vector<Batch> all;
  const std::size_t pool = size <= positions.size() / pool_batches ? size * pool_batches : positions.size();
  for (std::size_t i = 0; i < positions.size(); i += pool) {
    const auto part = std::span(positions).subspan(i, std::min(pool, positions.size() - i));
    sort_by_length(part, lengths);
    cut(part, size, all);
  }
  rng.shuffle(all);
  return all;
}

}  // namespace translator
