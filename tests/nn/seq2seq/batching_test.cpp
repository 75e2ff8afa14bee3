#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include <rill/core/core.h>
#include <rill/nn/seq2seq/batching.h>

namespace {

using namespace rill;
using nn::BatchIndices;
using nn::ExampleLengths;

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

std::vector<ExampleLengths> random_lengths(std::int64_t n) {
  Rng rng(11);
  std::vector<ExampleLengths> lengths;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto draw = [&] { return 1 + static_cast<std::int64_t>(rng.below(30)); };
    const std::int64_t source = draw();
    lengths.push_back({source, draw()});
  }
  return lengths;
}

std::vector<std::int64_t> flat(const std::vector<BatchIndices>& batches) {
  std::vector<std::int64_t> all;
  for (const BatchIndices& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

bool is_permutation_of(std::vector<std::int64_t> indices, std::int64_t n) {
  std::sort(indices.begin(), indices.end());
  std::vector<std::int64_t> wanted(static_cast<std::size_t>(n));
  std::iota(wanted.begin(), wanted.end(), 0);
  return indices == wanted;
}

std::int64_t longest(const BatchIndices& batch, const std::vector<ExampleLengths>& lengths,
                     std::int64_t ExampleLengths::*side) {
  std::int64_t most = 0;
  for (const std::int64_t i : batch) most = std::max(most, lengths[static_cast<std::size_t>(i)].*side);
  return most;
}

/// Padded target steps per real one.
double padding(const std::vector<BatchIndices>& batches, const std::vector<ExampleLengths>& lengths) {
  double real = 0, padded = 0;
  for (const ExampleLengths& l : lengths) real += static_cast<double>(l.target);
  for (const BatchIndices& batch : batches) {
    padded += static_cast<double>(longest(batch, lengths, &ExampleLengths::target) * std::ssize(batch));
  }
  return padded / real;
}

}  // namespace

TEST_CASE("batching: sorted batches are ordered by target length, then source length, then index") {
  const std::vector<ExampleLengths> lengths = {{3, 5}, {2, 4}, {1, 5}, {9, 1}, {2, 4}};
  CHECK(nn::sorted_batches(lengths, {.batch_size = 2}) == std::vector<BatchIndices>{{3, 1}, {4, 2}, {0}});
  CHECK(nn::sorted_batches(lengths) == std::vector<BatchIndices>{{3, 1, 4, 2, 0}});
  CHECK(nn::sorted_batches({}).empty());
}

TEST_CASE("batching: every example occurs once, whatever the sizes") {
  Rng rng(1);
  for (const std::int64_t n : {0, 1, 63, 64, 65, 1000, 7001}) {
    const auto lengths = random_lengths(n);
    for (const std::int64_t size : {std::int64_t{1}, std::int64_t{7}, std::int64_t{64}, unlimited}) {
      if (n > 1000 && size < 7) continue;
      for (const std::int64_t max_tokens : {std::int64_t{20}, std::int64_t{300}, unlimited}) {
        const nn::BatchingOptions options{.batch_size = size, .max_tokens = max_tokens};
        const auto sorted = nn::sorted_batches(lengths, options);
        const auto bucketed = nn::bucketed_batches(lengths, options, rng);
        for (const auto* batches : {&sorted, &bucketed}) {
          CHECK(is_permutation_of(flat(*batches), n));
          for (const BatchIndices& batch : *batches) {
            const std::int64_t steps = std::max(longest(batch, lengths, &ExampleLengths::source),
                                                longest(batch, lengths, &ExampleLengths::target));
            CHECK((!batch.empty() && std::ssize(batch) <= size));
            CHECK((batch.size() == 1 || steps * std::ssize(batch) <= max_tokens));
          }
        }
      }
      const auto random = nn::random_batches(n, size, rng);
      CHECK(is_permutation_of(flat(random), n));
      for (std::size_t i = 0; i < random.size(); ++i) {
        CHECK((i + 1 == random.size() || std::ssize(random[i]) == size));
      }
    }
  }
}

TEST_CASE("batching: max_tokens counts the padding of the longer side") {
  const std::vector<ExampleLengths> lengths = {{2, 2}, {2, 2}, {2, 3}, {9, 3}, {1, 50}};
  CHECK(nn::sorted_batches(lengths, {.max_tokens = 9}) == std::vector<BatchIndices>{{0, 1, 2}, {3}, {4}});
  CHECK(nn::sorted_batches(lengths, {.max_tokens = 8}) == std::vector<BatchIndices>{{0, 1}, {2}, {3}, {4}});
  CHECK(nn::sorted_batches(lengths, {.batch_size = 2, .max_tokens = 18}) ==
        std::vector<BatchIndices>{{0, 1}, {2, 3}, {4}});
}

TEST_CASE("batching: bucketed batches contain examples of similar length in random order") {
  const auto lengths = random_lengths(20000);
  const nn::BatchingOptions options{.batch_size = 32};
  Rng a(1), b(1), c(2);
  const auto first = nn::bucketed_batches(lengths, options, a);
  CHECK(first == nn::bucketed_batches(lengths, options, b));
  CHECK(first != nn::bucketed_batches(lengths, options, c));
  CHECK(first != nn::bucketed_batches(lengths, options, a));  // the next epoch
  CHECK(padding(first, lengths) < 1.05);
  CHECK(padding(nn::sorted_batches(lengths, options), lengths) < 1.01);
  // The batches themselves are shuffled.
  int falls = 0;
  const auto target = [&](const BatchIndices& batch) {
    return lengths[static_cast<std::size_t>(batch.front())].target;
  };
  for (std::size_t i = 1; i < first.size(); ++i) falls += target(first[i]) < target(first[i - 1]) ? 1 : 0;
  CHECK(falls > static_cast<int>(first.size()) / 4);
}

TEST_CASE("batching: sequences are padded at the end, time-major or batch first") {
  const nn::TokenSequences sequences = {{5, 6, 7}, {}, {8}};
  const auto values = [](const Tensor& t) { return t.to_vector<std::int64_t>(); };
  const nn::PaddedSequences all = nn::pad_sequence(sequences);
  CHECK(all.values.shape() == Shape{3, 3});
  CHECK(values(all.values) == std::vector<std::int64_t>{5, 0, 8, 6, 0, 0, 7, 0, 0});
  CHECK(values(all.lengths) == std::vector<std::int64_t>{3, 0, 1});
  const nn::PaddedSequences some =
      nn::pad_sequence(sequences, BatchIndices{2, 0, 2}, {.batch_first = true, .padding_value = -100});
  CHECK(values(some.values) == std::vector<std::int64_t>{8, -100, -100, 5, 6, 7, 8, -100, -100});
  CHECK(values(some.lengths) == std::vector<std::int64_t>{1, 3, 1});
  CHECK(nn::pad_sequence(nn::TokenSequences{}).values.shape() == Shape{0, 0});
  CHECK(nn::pad_sequence(nn::TokenSequences{{}, {}}).values.shape() == Shape{0, 2});
  CHECK_THROWS_WITH_AS(nn::pad_sequence(sequences, BatchIndices{3}), "pad_sequence: index 3 is outside 0..2",
                       Error);
  CHECK_THROWS_AS(nn::pad_sequence(sequences, BatchIndices{-1}), Error);
}

TEST_CASE("batching: tensors of any shape and dtype are padded, strided ones too") {
  Rng rng(1);
  const Tensor a = randn({3, 2}, rng, float64), b = randn({2, 1}, rng, float64).t();
  const std::vector<Tensor> both{a, b};
  const nn::PaddedSequences padded = nn::pad_sequence(both, {.padding_value = 9});
  CHECK(padded.values.shape() == Shape{3, 2, 2});
  CHECK(padded.values.select(1, 0).to_vector() == a.to_vector());
  CHECK(padded.values.select(1, 1).narrow(0, 0, 1).to_vector() == b.to_vector());
  CHECK(padded.values.select(1, 1).narrow(0, 1, 2).to_vector() == std::vector<double>(4, 9.0));
  CHECK(padded.lengths.to_vector<std::int64_t>() == std::vector<std::int64_t>{3, 1});
  const Tensor batch_first = nn::pad_sequence(both, {.batch_first = true, .padding_value = 9}).values;
  CHECK(batch_first.to_vector() == padded.values.transpose(0, 1).to_vector());
  const std::vector<Tensor> wide{a, zeros({2, 3}, float64)}, mixed{a, zeros({2, 2})}, scalars{scalar(1.0)};
  CHECK_THROWS_WITH_AS(
      nn::pad_sequence(wide),
      "pad_sequence: sequence 1 is float64 [2, 3], sequence 0 is float64 [3, 2]; all but the "
      "length must be equal",
      Error);
  CHECK_THROWS_AS(nn::pad_sequence(mixed), Error);
  CHECK_THROWS_AS(nn::pad_sequence(scalars), Error);
  CHECK_THROWS_AS(nn::pad_sequence(std::vector<Tensor>{}), Error);
}

TEST_CASE("batching: decoder inputs are the targets shifted by one step") {
  const Tensor target = tensor({3, 4, 5, 2, 2, 0}).reshape({3, 2});
  CHECK(nn::shift_tokens_right(target, 1).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{1, 1, 3, 4, 5, 2});
  CHECK(nn::shift_tokens_right(zeros({0, 2}, int64), 1).shape() == Shape{0, 2});
  CHECK_THROWS_AS(nn::shift_tokens_right(zeros({2, 2}), 1), Error);
}

TEST_CASE("batching: sizes of 0 and negative lengths are errors") {
  Rng rng(1);
  CHECK_THROWS_WITH_AS(
      nn::sorted_batches({}, {.batch_size = 0}),
      doctest::Contains("batch_size 0, max_tokens 9223372036854775807 and bucket_batches 100 must be"),
      Error);
  CHECK_THROWS_AS(nn::bucketed_batches({}, {.max_tokens = 0}, rng), Error);
  CHECK_THROWS_AS(nn::bucketed_batches({}, {.bucket_batches = 0}, rng), Error);
  CHECK_THROWS_AS(nn::sorted_batches(std::vector<ExampleLengths>{{-1, 0}}), Error);
  CHECK_THROWS_AS(nn::random_batches(3, 0, rng), Error);
  CHECK_THROWS_AS(nn::random_batches(-1, 2, rng), Error);
}
