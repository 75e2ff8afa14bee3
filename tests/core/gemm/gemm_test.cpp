#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <rill/core/error.h>
#include <rill/core/gemm/blas.h>
#include <rill/core/gemm/blocked.h>
#include <rill/core/gemm/gemm.h>
#include <rill/core/gemm/thin.h>
#include <rill/core/parallel.h>

#include <support/matrix_product.h>

extern "C" {  // only blas.cpp may include OpenBLAS's header
int openblas_get_num_procs();
int openblas_get_num_threads();
int openblas_get_parallel();
void openblas_set_num_threads(int);
}

namespace rill {
namespace {

using test::Aligned;
using test::Product;
using test::same_bits;
using test::tolerance;

template <class T>
std::vector<T> by_blas(const Product<T>& p) {
  return p.by([&](auto a, auto b, auto c) { kernels::blas_gemm(a, b, p.beta, c); });
}

// Columns [first, last) only.
template <class T>
std::vector<T> by_thin_gemm(const Product<T>& p, std::int64_t first, std::int64_t last) {
  return p.by([&](auto a, auto b, auto c) {
    kernels::thin_gemm(a, b.slice_columns(first, last), p.beta, c.slice_columns(first, last));
  });
}

template <class T>
std::vector<T> by_gemm(const Product<T>& p) {
  return p.by([&](auto a, auto b, auto c) { gemm(a, b, p.beta, c); });
}

template <class T>
class Packed : public Aligned<T> {
 public:
  explicit Packed(MatrixView<const T> b) : Aligned<T>(kernels::packed_size<T>(b.rows, b.columns)) {
    kernels::pack(b, this->data());
  }
};

// `rows` rows at a time.
template <class T>
std::vector<T> by_packed_gemm(const Product<T>& p, std::int64_t rows = 1000) {
  const Packed<T> packed(p.view_b());
  return p.in_blocks(rows, 1000,
                     [&](auto a, auto, auto c) { kernels::packed_gemm<T>(a, packed.data(), p.beta, c); });
}

// In blocks of `rows` × `columns`.
template <class T>
std::vector<T> by_blocked_gemm(const Product<T>& p, std::int64_t rows = 1000, std::int64_t columns = 1000) {
  const Aligned<T> workspace(kernels::blocked_workspace<T>());
  return p.in_blocks(rows, columns, [&](auto a, auto b, auto c) {
    kernels::blocked_gemm(a, b, p.beta, c, workspace.data());
  });
}

}  // namespace

TEST_CASE_TEMPLATE("blas_gemm: every transposition, beta and odd size", T, float, double) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const T beta : {T(0), T(1), T(-0.5)}) {
        for (const std::int64_t m : {0, 1, 2, 5, 17, 64}) {
          for (const std::int64_t n : {0, 1, 3, 16, 65}) {
            for (const std::int64_t k : {0, 1, 4, 33}) {
              const Product<T> product(ta, tb, m, n, k, beta);
              CAPTURE(m);
              CAPTURE(n);
              CAPTURE(k);
              REQUIRE(product.error(by_blas(product)) < tolerance<T>);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("blas_gemm: concurrent calls give the same bits as one call") {
  const Product<float> product(false, true, 70, 130, 90, 1.0f);
  const auto expected = by_blas(product);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 50; ++round) wrong[t] += !same_bits(by_blas(product), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("blas_gemm: products leave the thread count of OpenBLAS unchanged") {
  if (!std::getenv("OPENBLAS_NUM_THREADS") && !std::getenv("OMP_NUM_THREADS") && openblas_get_parallel() != 0)
    CHECK(openblas_get_num_threads() == openblas_get_num_procs());  // loading rill has not changed it
  const int before = openblas_get_num_threads();
  openblas_set_num_threads(3);
  const int set = openblas_get_num_threads();  // 1 in a build without threads
  const Product<float> large(false, false, 64, 128, 96, 0), row(false, false, 1, 300, 300, 0);
  const auto multiply = [&] {
    for (int i = 0; i < 200; ++i) by_blas(i % 2 ? large : row);
  };
  std::thread other(multiply);
  multiply();
  other.join();
  CHECK(openblas_get_num_threads() == set);
  openblas_set_num_threads(before);
}

TEST_CASE("blas_gemm: blas_name names the library") {
  CHECK(std::string(kernels::blas_name()).find("OpenBLAS") == 0);
}

TEST_CASE_TEMPLATE("packed_gemm: every beta and tile size, full and partial tiles", T, float, double) {
  for (const bool tb : {false, true}) {
    for (const std::int64_t m : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 17, 96, 97, 100}) {
      for (const std::int64_t n : {0, 1, 7, 8, 15, 16, 17, 47, 48, 49, 96, 100, 193, 200}) {
        for (const std::int64_t k : {0, 1, 3, 40, 260}) {
          for (const T beta : {T(0), T(1), T(0.5)}) {
            const Product<T> product(false, tb, m, n, k, beta);
            CAPTURE(m);
            CAPTURE(n);
            CAPTURE(k);
            REQUIRE(product.error(by_packed_gemm(product)) < tolerance<T>);
          }
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("packed_gemm: the bits of a row do not depend on the other rows", T, float, double) {
  const Product<T> product(false, false, 101, 203, 77, T(1));
  const auto whole = by_packed_gemm(product);
  for (const std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 11, 32, 50}) {
    CAPTURE(rows);
    CHECK(same_bits(by_packed_gemm(product, rows), whole));
  }
}

TEST_CASE("packed_gemm: a NaN in A stays in its row and an infinity in B in its column") {
  Product<float> product(false, false, 9, 50, 20, 0.0f);
  product.a[static_cast<std::size_t>(3 * product.lda + 5)] = std::nanf("");
  product.b[static_cast<std::size_t>(7 * product.ldb + 49)] = std::numeric_limits<float>::infinity();
  const auto result = by_packed_gemm(product);
  for (std::int64_t i = 0; i < product.m; ++i) {
    for (std::int64_t j = 0; j < product.n; ++j) {
      const float x = result[static_cast<std::size_t>(i * product.ldc + j)];
      CHECK(std::isnan(x) == (i == 3));
      if (i != 3) CHECK(std::isinf(x) == (j == 49));
    }
  }
}

TEST_CASE_TEMPLATE("thin_gemm: every beta and row count, B plain and transposed, full and partial tiles", T,
                   float, double) {
  for (const bool tb : {false, true}) {
    for (const std::int64_t m : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 17, 64}) {
      for (const std::int64_t n : {0, 1, 7, 15, 16, 17, 63, 64, 100, 768, 800}) {
        for (const std::int64_t k : {0, 1, 16, 127, 129, 700}) {
          const T beta = k % 2 == 0 ? T(0) : T(-0.5);
          const Product<T> product(false, tb, m, n, k, beta);
          CAPTURE(m);
          CAPTURE(n);
          CAPTURE(k);
          CAPTURE(tb);
          REQUIRE(product.error(by_thin_gemm(product, 0, n)) < tolerance<T>);
        }
      }
    }
  }
}

TEST_CASE("thin_gemm: a NaN in A stays in its row and an infinity in B in its column") {
  for (const bool tb : {false, true}) {
    Product<float> product(false, tb, 9, 37, 21, 0.0f);
    product.a[static_cast<std::size_t>(3 * product.lda + 20)] = std::numeric_limits<float>::quiet_NaN();
    const std::int64_t at = tb ? 36 * product.ldb + 5 : 5 * product.ldb + 36;
    product.b[static_cast<std::size_t>(at)] = std::numeric_limits<float>::infinity();
    const auto result = by_thin_gemm(product, 0, product.n);
    for (std::int64_t i = 0; i < product.m; ++i) {
      for (std::int64_t j = 0; j < product.n; ++j) {
        const float value = result[static_cast<std::size_t>(i * product.ldc + j)];
        CHECK(std::isnan(value) == (i == 3));
        CHECK(std::isinf(value) == (i != 3 && j == 36));
      }
    }
  }
}

TEST_CASE_TEMPLATE("thin_gemm: the bits of a column do not depend on the other columns", T, float, double) {
  for (const bool tb : {false, true}) {
    const Product<T> product(false, tb, 10, 333, 300, T(1));
    const auto whole = by_thin_gemm(product, 0, 333);
    auto split = by_thin_gemm(product, 0, 101);
    const auto rest = by_thin_gemm(product, 101, 333);
    for (std::int64_t i = 0; i < product.m; ++i) {
      const auto row = static_cast<std::ptrdiff_t>(i * product.ldc);
      std::copy_n(rest.begin() + row + 101, 333 - 101, split.begin() + row + 101);
    }
    CHECK(same_bits(split, whole));
  }
}

TEST_CASE_TEMPLATE("blocked_gemm: every transposition and beta, sizes at block boundaries", T, float,
                   double) {
  struct Size {
    std::int64_t m, n, k;
  };
  for (const Size& size : {Size{0, 5, 5}, Size{5, 0, 5}, Size{5, 5, 0}, Size{1, 1, 1}, Size{7, 47, 5},
                           Size{97, 50, 33}, Size{100, 770, 20}, Size{20, 30, 257}, Size{13, 801, 515}}) {
    for (const int flags : {0, 1, 2, 3}) {
      for (const T beta : {T(0), T(1), T(-0.5)}) {
        const Product<T> product(flags & 1, flags & 2, size.m, size.n, size.k, beta);
        CAPTURE(size.m);
        CAPTURE(size.n);
        CAPTURE(size.k);
        REQUIRE(product.error(by_blocked_gemm(product)) < tolerance<T>);
      }
    }
  }
}

TEST_CASE_TEMPLATE("blocked_gemm: every height of the packing tiles, and partial panels", T, float, double) {
  for (std::int64_t m = 1; m <= 17; ++m) {
    for (const std::int64_t n : {1, 15, 16, 20, 33, 48, 63, 68, 90, 100}) {
      for (const int flags : {0, 1, 2, 3}) {
        const Product<T> product(flags & 1, flags & 2, m, n, 41, T(-0.5));
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(flags);
        REQUIRE(product.error(by_blocked_gemm(product)) < tolerance<T>);
      }
    }
  }
}

TEST_CASE_TEMPLATE("blocked_gemm: any split gives the same bits as the whole product and packed_gemm", T,
                   float, double) {
  for (const int flags : {0, 1, 2, 3}) {
    const Product<T> product(flags & 1, flags & 2, 110, 300, 530, T(1));
    const auto whole = by_blocked_gemm(product);
    for (const auto& part : {std::pair<int, int>{1, 300}, {7, 300}, {110, 1}, {50, 64}, {96, 49}}) {
      CAPTURE(part.first);
      CAPTURE(part.second);
      CHECK(same_bits(by_blocked_gemm(product, part.first, part.second), whole));
    }
    if (product.ta) continue;
    CHECK(same_bits(by_packed_gemm(product), whole));
  }
}

TEST_CASE_TEMPLATE("gemm: correct, with the same bits on any number of threads", T, float, double) {
  struct Size {
    std::int64_t m, n, k;
  };
  const int before = num_threads();
  for (const Size& size : {Size{5, 7, 3},
                           {1, 3000, 400},
                           {300, 1, 4000},
                           {256, 300, 70},
                           {1000, 40, 64},
                           {33, 2100, 65},
                           {600, 515, 129},
                           {40, 1000, 300},
                           {2, 3000, 400},
                           {15, 3001, 130},
                           {9, 777, 515},
                           {15, 15, 9000},
                           {3001, 15, 130},
                           {2050, 3, 515}}) {
    for (const int flags : {0, 1, 2, 3}) {
      const Product<T> product(flags & 1, flags & 2, size.m, size.n, size.k, flags == 3 ? T(1) : T(0));
      set_num_threads(1);
      const auto alone = by_gemm(product);
      CAPTURE(size.m);
      CAPTURE(size.n);
      CAPTURE(size.k);
      CHECK(product.error(alone) < tolerance<T>);
      for (const int threads : {2, 3, 8}) {
        set_num_threads(threads);
        CHECK(same_bits(by_gemm(product), alone));
      }
    }
  }
  set_num_threads(before);
}

TEST_CASE("gemm: long sums of one sign are as precise as short ones") {
  // One size per kernel: BLAS on vectors and matrices, thin, blocked.
  for (const auto& [m, n] : {std::pair{1, 2}, {2, 1}, {3, 3}, {4, 20}, {16, 17}}) {
    for (const int flags : {0, 1, 2, 3}) {
      Product<float> product(flags & 1, flags & 2, m, n, 100000, 0.0F);
      for (float& x : product.a) x = std::abs(x);
      for (float& x : product.b) x = std::abs(x);
      CAPTURE(m);
      CAPTURE(n);
      CAPTURE(flags);
      CHECK(product.error(by_gemm(product)) < 1e-6);  // up to 4e-7 without fused multiply-adds
    }
  }
}

TEST_CASE_TEMPLATE("gemm: a transposed result is the transpose of the product", T, float, double) {
  const Product<T> product(false, true, 20, 30, 40, T(-0.5));
  auto result = product.c;
  gemm(product.view_b().t(), product.view_a().t(), product.beta, product.view_of(result).t());
  CHECK(same_bits(result, by_gemm(product)));
}

TEST_CASE("gemm: mismatched sizes and sizes beyond the limit of BLAS are errors") {
  float x = 0;
  const MatrixView<const float> a{&x, 2, 3}, large{&x, std::int64_t{1} << 31, 1}, one{&x, 1, 1};
  CHECK_THROWS_WITH_AS(gemm<float>(a, a, 0.0f, {&x, 2, 3}), "matmul: sizes 2 × 3 and 2 × 3 do not make 2 × 3",
                       Error);
  CHECK_THROWS_WITH_AS(
      gemm<float>(large, one, 0.0f, {&x, std::int64_t{1} << 31, 1}),
      "matmul: a size or leading dimension of 2147483648 is beyond the 2147483647 of BLAS; split the product",
      Error);
}

}  // namespace rill
