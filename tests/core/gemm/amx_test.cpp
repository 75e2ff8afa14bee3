#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <rill/core/gemm/amx.h>
#include <rill/core/gemm/amx_product.h>
#include <rill/core/gemm/blocked.h>
#include <rill/core/gemm/gemm.h>
#include <rill/core/gemm/packed_matrix.h>
#include <rill/core/ops/packed_weight.h>
#include <rill/core/parallel.h>

#include <support/emulated_tiles.h>
#include <support/matrix_product.h>

namespace rill {
namespace {

using test::Aligned;
using test::EmulatedTiles;
using test::same_bits;

using Product = test::Product<float>;
constexpr double tolerance = test::tolerance<float>;
constexpr float infinity = std::numeric_limits<float>::infinity();

using ConstView = MatrixView<const float>;
using View = MatrixView<float>;

// Backends: emulated tiles and those of the processor.
struct Emulated {
  static bool available() { return true; }
  static void gemm(ConstView a, ConstView b, float beta, View c) {
    const Aligned<std::uint32_t> workspace(kernels::amx::workspace_words(kernels::amx::from_memory));
    kernels::amx::product<EmulatedTiles>(a, b, beta, c, workspace.data());
  }
  static bool pack(ConstView b, const Aligned<std::uint32_t>& packed) {
    return kernels::amx::split(kernels::amx::Role::right, b.t(), packed.data(),
                               kernels::amx::lines_words(b.rows));
  }
  static void packed_gemm(ConstView a, const std::uint32_t* packed, float beta, View c) {
    const Aligned<std::uint32_t> workspace(kernels::amx::workspace_words(kernels::amx::from_packed));
    kernels::amx::packed_product<EmulatedTiles>(a, packed, beta, c, workspace.data());
  }
};

struct OnProcessor {
  static bool available() {
    if (!kernels::has_amx()) std::puts("skipped: the processor has no AMX");
    return kernels::has_amx();
  }
  static void gemm(ConstView a, ConstView b, float beta, View c) {
    const Aligned<std::uint32_t> workspace(kernels::amx_workspace() / 4);
    kernels::amx_gemm(a, b, beta, c, workspace.data());
  }
  static bool pack(ConstView b, const Aligned<std::uint32_t>& packed) {
    return kernels::amx_pack(b, packed.data());
  }
  static void packed_gemm(ConstView a, const std::uint32_t* packed, float beta, View c) {
    const Aligned<std::uint32_t> workspace(kernels::amx_packed_workspace() / 4);
    kernels::amx_packed_gemm(a, packed, beta, c, workspace.data());
  }
};

// The product, computed in blocks of `rows` × `columns`.
template <class Backend>
std::vector<float> result(const Product& p, std::int64_t rows = 1 << 20, std::int64_t columns = 1 << 20) {
  return p.in_blocks(rows, columns, [&](auto a, auto b, auto c) { Backend::gemm(a, b, p.beta, c); });
}

// The product with B packed, `rows` rows at a time.
template <class Backend>
std::vector<float> packed_result(const Product& p, std::int64_t rows = 1 << 20) {
  const Aligned<std::uint32_t> packed((p.n + 31) / 32 * kernels::amx::lines_words(p.k));
  REQUIRE(Backend::pack(p.view_b(), packed));
  return p.in_blocks(rows, 1 << 20,
                     [&](auto a, auto, auto c) { Backend::packed_gemm(a, packed.data(), p.beta, c); });
}

// Element (i, j) of A B, computed in float64 and rounded to float32.
float exact(const Product& p, std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (std::int64_t q = 0; q < p.k; ++q) sum += static_cast<double>(p.left(i, q)) * p.right(q, j);
  return static_cast<float>(sum);
}

bool is_near(float x, float y) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  return x == y || std::abs(x - y) <= 1e-5F * (1 + std::abs(y));
}

// Root mean square of the elementwise errors, each relative to the sum of the terms' magnitudes.
double relative_error(const Product& p, const std::vector<float>& c) {
  double squares = 0;
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      double size = 0;
      for (std::int64_t q = 0; q < p.k; ++q) {
        const double term = static_cast<double>(p.left(i, q)) * p.right(q, j);
        sum += term;
        size += std::abs(term);
      }
      const double error = (p.at(c, i, j) - sum) / size;
      squares += error * error;
    }
  }
  return std::sqrt(squares / static_cast<double>(p.m * p.n));
}

struct Size {
  std::int64_t m, n, k;
};

}  // namespace

TEST_CASE_TEMPLATE("amx_gemm: every transposition and beta, sizes at tile and block boundaries", Backend,
                   Emulated, OnProcessor) {
  if (!Backend::available()) return;
  for (const Size& size :
       {Size{0, 5, 5}, Size{5, 0, 5}, Size{5, 5, 0}, Size{1, 1, 1}, Size{16, 32, 32}, Size{17, 31, 33},
        Size{32, 64, 31}, Size{33, 390, 2}, Size{130, 33, 65}, Size{48, 40, 520}, Size{20, 30, 1030}}) {
    for (const int flags : {0, 1, 2, 3}) {
      for (const float beta : {0.0F, 1.0F, -0.5F}) {
        const Product product(flags & 1, flags & 2, size.m, size.n, size.k, beta);
        CAPTURE(size.m);
        CAPTURE(size.n);
        CAPTURE(size.k);
        CAPTURE(flags);
        REQUIRE(product.error(result<Backend>(product)) < tolerance);
        if (!product.ta) REQUIRE(product.error(packed_result<Backend>(product)) < tolerance);
      }
    }
  }
}

TEST_CASE_TEMPLATE("amx_gemm: any split gives the same bits as the whole product and amx_packed_gemm",
                   Backend, Emulated, OnProcessor) {
  if (!Backend::available()) return;
  for (const int flags : {0, 1, 2, 3}) {
    const Product product(flags & 1, flags & 2, 40, 70, 530, 1.0F);
    const auto whole = result<Backend>(product);
    for (const auto& part : {std::pair<int, int>{17, 70}, {40, 19}, {33, 48}}) {
      CAPTURE(part.first);
      CAPTURE(part.second);
      CHECK(same_bits(result<Backend>(product, part.first, part.second), whole));
    }
    if (product.ta) continue;
    CHECK(same_bits(packed_result<Backend>(product), whole));
    CHECK(same_bits(packed_result<Backend>(product, 23), whole));
  }
}

TEST_CASE_TEMPLATE("amx_gemm: errors are no larger than those of float32 arithmetic", Backend, Emulated,
                   OnProcessor) {
  if (!Backend::available()) return;
  for (const std::int64_t k : {40, 300, 1000, 5000}) {
    const Product product(false, false, 40, 50, k, 0.0F);
    const Aligned<float> workspace(kernels::blocked_workspace<float>());
    const auto by_vectors =
        product.by([&](auto a, auto b, auto c) { kernels::blocked_gemm(a, b, 0.0F, c, workspace.data()); });
    CAPTURE(k);
    const double error = relative_error(product, result<Backend>(product));
    CHECK(error < 3e-8);
    CHECK(error < 1.1 * relative_error(product, by_vectors));
  }
}

TEST_CASE_TEMPLATE("amx_gemm: infinity, NaN and elements too large to split give the float32 result", Backend,
                   Emulated, OnProcessor) {
  if (!Backend::available()) return;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float special : {infinity, -infinity, nan, 3.4e38F, -0x1p59F, 1e30F, 0x1.fffffep58F}) {
    for (const int flags : {0, 1, 2, 3}) {
      for (const auto& [in_left, in_right] : {std::pair{true, false}, {false, true}, {true, true}}) {
        Product product(flags & 1, flags & 2, 40, 50, 70, 0.0F);
        // One element in a full block, one in a padded block. The other operand is -1, 0 or 1, since split
        // terms that overflow would turn 0 into infinity · 0.
        for (const auto& [line, p] : {std::pair{3, 5}, {21, 65}}) {
          for (std::int64_t i = 0; i < 40; ++i) product.left(i, p) = product.right(p, i) = i % 3 - 1.0F;
          if (in_left) product.left(line, p) = special;
          if (in_right) product.right(p, line) = special;
        }
        std::vector<std::vector<float>> results{result<Backend>(product)};
        if (!in_right && !product.ta) results.push_back(packed_result<Backend>(product));
        CAPTURE(special);
        CAPTURE(flags);
        for (const auto& c : results) {
          for (std::int64_t i = 0; i < 40; ++i) {
            for (std::int64_t j = 0; j < 50; ++j) REQUIRE(is_near(product.at(c, i, j), exact(product, i, j)));
          }
        }
      }
    }
  }
}

TEST_CASE("amx_gemm: with infinities in any block any split gives the same bits") {
  using Backend = Emulated;
  for (const Size& size : {Size{70, 550, 540}, Size{140, 40, 540}}) {
    const bool transposed = size.n == 40;
    Product product(transposed, transposed, size.m, size.n, size.k, 1.0F);
    for (const auto& [line, p] : {std::pair{3, 5}, {66, 530}}) product.left(line, p) = infinity;
    if (transposed) product.right(530, 9) = -1e30F;
    const auto whole = result<Backend>(product);
    CHECK(same_bits(result<Backend>(product, 67, 96), whole));
    if (!transposed) CHECK(same_bits(packed_result<Backend>(product), whole));
    for (std::int64_t i = 0; i < product.m; ++i) {
      const bool has = i == 3 || i == 66;
      for (std::int64_t j = 0; j < product.n; j += 13) CHECK(std::isfinite(product.at(whole, i, j)) != has);
      if (!has) CHECK(is_near(product.at(whole, i, 9), exact(product, i, 9) + product.at(product.c, i, 9)));
    }
  }
}

TEST_CASE_TEMPLATE("amx_gemm: terms and sums below 2^-126 are flushed to 0", Backend, Emulated, OnProcessor) {
  if (!Backend::available()) return;
  Product product(false, false, 20, 20, 40, 0.0F);
  for (std::int64_t p = 0; p < 40; ++p) {
    for (std::int64_t j = 0; j < 20; ++j) product.right(p, j) = p == j ? 1.0F : 0.0F;
  }
  for (std::int64_t i = 0; i < 20; ++i) product.left(i, 0) = 0x1.0101p-118F;  // its last term is below 2^-126
  const auto unit = result<Backend>(product);
  for (std::int64_t i = 0; i < 20; ++i) CHECK(product.at(unit, i, 0) == 0x1.01p-118F);
  std::fill(product.a.begin(), product.a.end(), 0x1p-63F);
  std::fill(product.b.begin(), product.b.end(), 0x1p-64F);
  const auto least = result<Backend>(product);
  for (std::int64_t i = 0; i < 20; ++i) CHECK(product.at(least, i, i) == 0);
}

TEST_CASE("amx_gemm: the emulation matches the processor bit for bit") {
  if (!OnProcessor::available()) return;
  for (const float scale : {1.0F, 1e-9F, 1e-19F, 1e9F}) {
    Product product(false, true, 37, 45, 300, 0.0F);
    for (float& x : product.a) x *= scale;
    for (float& x : product.b) x *= scale;
    CAPTURE(scale);
    CHECK(same_bits(result<Emulated>(product), result<OnProcessor>(product)));
  }
}

TEST_CASE("amx_gemm: gemm uses it for large products and PackedMatrix for 16 rows or more") {
  if (!OnProcessor::available()) return;
  const Product product(false, false, 64, 128, 300, 0.0F);
  const auto expected = result<OnProcessor>(product);
  CHECK(same_bits(product.by([](auto a, auto b, auto c) { gemm(a, b, 0.0F, c); }), expected));
  const auto by_packed = [&](std::int64_t rows) {
    const PackedMatrix<float> packed(product.view_b(), rows);
    return product.by([&](auto a, auto, auto c) { packed.multiply(a, 0.0F, c); });
  };
  CHECK_FALSE(same_bits(by_packed(15), expected));
  CHECK(same_bits(by_packed(16), expected));
}

TEST_CASE("gemm: on AMX any number of threads gives the same bits") {
  if (!OnProcessor::available()) return;
  const Product product(false, true, 200, 600, 300, 0.0F);
  const auto expected = result<OnProcessor>(product);
  const int before = num_threads();
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    CHECK(same_bits(product.by([](auto a, auto b, auto c) { gemm(a, b, 0.0F, c); }), expected));
  }
  set_num_threads(before);
}

TEST_CASE("amx_pack: a matrix with an element that cannot be split is rejected") {
  Product product(false, false, 1, 40, 50, 0.0F);
  const Aligned<std::uint32_t> packed(2 * kernels::amx::lines_words(50));
  CHECK(Emulated::pack(product.view_b(), packed));
  product.right(49, 39) = 0x1p59F;
  CHECK_FALSE(Emulated::pack(product.view_b(), packed));
  product.right(49, 39) = 0;
  product.right(3, 4) = infinity;
  CHECK_FALSE(Emulated::pack(product.view_b(), packed));
}

TEST_CASE("packed: few and many rows, finite and infinite weights") {
  for (const float in_weight : {0.5F, infinity}) {
    Product product(false, false, 40, 50, 70, 0.0F);
    Tensor weight = empty({70, 50}, float32);
    for (std::int64_t p = 0; p < 70; ++p) {
      for (std::int64_t j = 0; j < 50; ++j) weight.mutable_data<float>()[p * 50 + j] = product.right(p, j);
    }
    weight.mutable_data<float>()[7 * 50 + 9] = in_weight;
    product.right(7, 9) = in_weight;
    const auto few = packed<float>(weight, 1), many = packed<float>(weight, 40);
    CHECK((few == many) == !kernels::has_amx());
    CHECK(few == packed<float>(weight, 2));
    CHECK(many == packed<float>(weight, 41));
    for (const auto& form : {few, many}) {
      const auto c = product.by([&](auto a, auto, auto to) { form->multiply(a, 0.0F, to); });
      for (std::int64_t i = 0; i < 40; ++i) {
        for (std::int64_t j = 0; j < 50; ++j) CHECK(is_near(product.at(c, i, j), exact(product, i, j)));
      }
    }
  }
}

}  // namespace rill
