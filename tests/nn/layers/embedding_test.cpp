#include <doctest/doctest.h>

#include <rill/core/core.h>
#include <rill/nn/layers/embedding.h>
#include <support/expect.h>

using namespace rill;
using test::check_error;

TEST_CASE("embedding: rows are normally distributed, and the padding row stays 0") {
  Rng rng(1);
  const nn::Embedding layer({.num_embeddings = 50, .embedding_dim = 40, .padding_idx = -1}, rng);
  CHECK(layer.options().padding_idx == 49);
  CHECK(sum(abs(layer.weight().select(0, 49))).item() == 0);
  const Tensor rows = layer.weight().detach().narrow(0, 0, 49);
  CHECK(mean(rows).item() == doctest::Approx(0).epsilon(0.1));
  CHECK(rill::stddev(rows).item() == doctest::Approx(1).epsilon(0.1));
  sum(layer(tensor<std::int64_t>({49, 1}))).backward();
  CHECK(sum(abs(layer.weight().grad().select(0, 49))).item() == 0);
  CHECK(sum(layer.weight().grad()).item() == 40);
}

TEST_CASE("embedding: invalid ids and options are errors") {
  Rng rng(1);
  const nn::Embedding layer({.num_embeddings = 5, .embedding_dim = 3}, rng);
  check_error([&] { layer(tensor<std::int64_t>({0, 5})); }, "embedding: index 5");
  check_error([&] { layer(tensor<std::int64_t>({-1})); }, "embedding: index -1");
  check_error([&] { layer(ones({2})); }, "embedding");
  check_error([&] { nn::Embedding({.num_embeddings = 0, .embedding_dim = 3}, rng); }, "num_embeddings 0");
  check_error([&] { nn::Embedding({.num_embeddings = 4, .embedding_dim = 3, .padding_idx = 4}, rng); },
              "padding_idx 4 is outside 0..3");
}
