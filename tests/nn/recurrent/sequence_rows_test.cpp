#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <rill/core/core.h>
#include <rill/core/gemm/amx.h>
#include <rill/nn/recurrent/sequence_rows.h>
#include <support/same.h>

namespace {

using namespace rill;
using Borders = std::vector<std::int64_t>;

constexpr std::int64_t costly = 1 << 30;  // floating-point operations of a row

Borders chunks(std::int64_t batch, DType dtype, std::int64_t flops = costly, std::int64_t batches = 1) {
  return nn::SequenceRows("test", 3, batch, Tensor()).chunk_borders(flops, dtype, batches);
}

}  // namespace

TEST_CASE("sequence rows: one chunk per thread, a single one if rows are cheap") {
  const test::Threads two(2);
  CHECK(chunks(8, float64) == Borders{0, 4, 8});
  CHECK(chunks(8, float64, 1) == Borders{0, 8});
  CHECK(chunks(8, float64, costly, 2) == Borders{0, 8});
  CHECK(chunks(1, float64) == Borders{0, 1});
  const test::Threads eight(8);
  CHECK(chunks(8, float64, costly, 2) == Borders{0, 2, 4, 6, 8});
  CHECK(chunks(3, float64) == Borders{0, 1, 2, 3});
}

TEST_CASE("sequence rows: chunks of ragged batches have about the same number of rows") {
  const test::Threads setter(2);
  const nn::SequenceRows rows("test", 9, 4, tensor<std::int64_t>({1, 9, 2, 6}));
  CHECK(rows.chunk_borders(costly, float64) == Borders{0, 1, 4});
}

TEST_CASE("sequence rows: on AMX a float32 batch of 16 or more has one chunk per started tile") {
  const test::Threads setter(8);
  const bool tiles = kernels::has_amx();
  CHECK(chunks(15, float32).size() == 9);
  CHECK(chunks(16, float32).size() == (tiles ? 2 : 9));
  CHECK(chunks(17, float32).size() == (tiles ? 3 : 9));
  CHECK(chunks(32, float32).size() == (tiles ? 3 : 9));
  CHECK(chunks(32, float64).size() == 9);
}
