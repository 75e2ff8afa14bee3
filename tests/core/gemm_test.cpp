#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <rill/core/error.h>
#include <rill/core/gemm.h>
#include <rill/core/kernels/gemm.h>
#include <rill/core/kernels/packed.h>
#include <rill/core/kernels/thin.h>
#include <rill/core/parallel.h>
#include <rill/core/random.h>

namespace rill {
namespace {

// Elements aligned to a cache line, NaN until written.
template <class T>
class Aligned {
 public:
  explicit Aligned(std::int64_t size) : storage_(static_cast<std::size_t>(size) + 64 / sizeof(T)) {
    std::fill(storage_.begin(), storage_.end(), std::numeric_limits<T>::quiet_NaN());
    void* at = storage_.data();
    std::size_t space = storage_.size() * sizeof(T);
    data_ = static_cast<T*>(std::align(64, static_cast<std::size_t>(size) * sizeof(T), at, space));
  }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;

  T* data() const { return data_; }

 private:
  std::vector<T> storage_;
  T* data_;
};

// Two matrices and the start of C, stored with rows longer than they need be.
template <class T>
struct Product {
  Product(bool transpose_a, bool transpose_b, std::int64_t rows, std::int64_t columns, std::int64_t inner,
          T beta_)
      : ta(transpose_a), tb(transpose_b), m(rows), n(columns), k(inner), beta(beta_) {
    lda = (ta ? m : k) + 2;
    ldb = (tb ? k : n) + 3;
    ldc = n + 1;
    Rng rng(static_cast<std::uint64_t>(m * 1000003 + n * 1009 + k));
    const auto fill = [&](std::vector<T>& x, std::int64_t size) {
      x.resize(static_cast<std::size_t>(size));
      rng.fill_normal(x.data(), size, 0, 1);
    };
    fill(a, (ta ? k : m) * lda);
    fill(b, (tb ? n : k) * ldb);
    fill(c, m * ldc);
    // What beta = 0 must not let through.
    if (beta == T(0)) {
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) c[static_cast<std::size_t>(i * ldc + j)] = std::nan("");
      }
    }
  }

  // The greatest error of `result`, against sums in double, relative to 1 + the sum of the magnitudes.
  double error(const std::vector<T>& result) const {
    double worst = 0;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < ldc; ++j) {
        const auto at = static_cast<std::size_t>(i * ldc + j);
        if (j >= n) {
          if (std::memcmp(&result[at], &c[at], sizeof(T)) != 0) return 1e9;  // written beyond the row
          continue;
        }
        double sum = beta == T(0) ? 0 : static_cast<double>(beta) * c[at];
        double size = 1 + std::abs(sum);
        for (std::int64_t p = 0; p < k; ++p) {
          const double term =
              static_cast<double>(a[static_cast<std::size_t>(ta ? p * lda + i : i * lda + p)]) *
              b[static_cast<std::size_t>(tb ? j * ldb + p : p * ldb + j)];
          sum += term;
          size += std::abs(term);
        }
        const double relative = std::abs(result[at] - sum) / size;
        if (!(relative <= worst)) worst = relative;
      }
    }
    return worst;
  }

  std::vector<T> by_gemm() const {
    auto result = c;
    kernels::gemm(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, beta, result.data(), ldc);
    return result;
  }

  // In parts of so many rows and columns.
  std::vector<T> by_blocked_gemm(std::int64_t rows, std::int64_t columns) const;

  // Its columns [first, last).
  std::vector<T> by_thin_gemm(std::int64_t first, std::int64_t last) const {
    auto result = c;
    const auto thin = tb ? kernels::thin_gemm_transposed<T> : kernels::thin_gemm<T>;
    thin(m, last - first, k, a.data(), lda, b.data() + (tb ? first * ldb : first), ldb, beta,
         result.data() + first, ldc);
    return result;
  }

  std::vector<T> by_parallel_gemm() const {
    auto result = c;
    parallel_gemm(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, beta, result.data(), ldc);
    return result;
  }

  bool ta, tb;
  std::int64_t m, n, k;
  T beta;
  std::int64_t lda, ldb, ldc;
  std::vector<T> a, b, c;
};

template <class T>
class Packed : public Aligned<T> {
 public:
  Packed(bool transposed, std::int64_t k, std::int64_t n, const T* b, std::int64_t ldb)
      : Aligned<T>(kernels::packed_size<T>(k, n)) {
    kernels::pack(transposed, k, n, b, ldb, this->data());
  }
};

template <class T>
std::vector<T> Product<T>::by_blocked_gemm(std::int64_t rows, std::int64_t columns) const {
  const Aligned<T> workspace(kernels::blocked_workspace<T>());
  auto result = c;
  for (std::int64_t i = 0; i < m; i += rows) {
    for (std::int64_t j = 0; j < n; j += columns) {
      kernels::blocked_gemm(ta, tb, std::min(rows, m - i), std::min(columns, n - j), k,
                            a.data() + (ta ? i : i * lda), lda, b.data() + (tb ? j * ldb : j), ldb, beta,
                            result.data() + i * ldc + j, ldc, workspace.data());
    }
  }
  return result;
}

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-14;

// Equal bit by bit, NaN included.
template <class T>
bool same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0);
}

}  // namespace

TEST_CASE_TEMPLATE("gemm: every transposition, beta and odd size", T, float, double) {
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
              REQUIRE(product.error(product.by_gemm()) < tolerance<T>);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("gemm: calls from several threads give the bits of one") {
  const Product<float> product(false, true, 70, 130, 90, 1.0f);
  const auto expected = product.by_gemm();
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 50; ++round) wrong[t] += !same_bits(product.by_gemm(), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("gemm: the BLAS has a name") { CHECK(std::string(kernels::blas_name()).find("OpenBLAS") == 0); }

TEST_CASE_TEMPLATE("packed_gemm: every beta and size of tile, and its edges", T, float, double) {
  for (const bool tb : {false, true}) {
    for (const std::int64_t m : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 17, 96, 97, 100}) {
      for (const std::int64_t n : {0, 1, 7, 8, 15, 16, 17, 47, 48, 49, 96, 100, 193, 200}) {
        for (const std::int64_t k : {0, 1, 3, 40, 260}) {
          for (const T beta : {T(0), T(1), T(0.5)}) {
            const Product<T> product(false, tb, m, n, k, beta);
            const Packed<T> packed(tb, k, n, product.b.data(), product.ldb);
            auto result = product.c;
            kernels::packed_gemm(m, n, k, product.a.data(), product.lda, packed.data(), beta, result.data(),
                                 product.ldc);
            CAPTURE(m);
            CAPTURE(n);
            CAPTURE(k);
            REQUIRE(product.error(result) < tolerance<T>);
          }
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("packed_gemm: a row has the same bits whatever rows come with it", T, float, double) {
  const std::int64_t m = 101;
  const Product<T> product(false, false, m, 203, 77, T(1));
  const Packed<T> packed(false, product.k, product.n, product.b.data(), product.ldb);
  const auto rows = [&](std::vector<T>& c, std::int64_t first, std::int64_t count) {
    kernels::packed_gemm(count, product.n, product.k, product.a.data() + first * product.lda, product.lda,
                         packed.data(), product.beta, c.data() + first * product.ldc, product.ldc);
  };
  auto whole = product.c;
  rows(whole, 0, m);
  for (const std::int64_t at_once : {1, 2, 3, 4, 5, 6, 7, 8, 11, 32, 50}) {
    auto parts = product.c;
    for (std::int64_t i = 0; i < m; i += at_once) rows(parts, i, std::min(at_once, m - i));
    CAPTURE(at_once);
    CHECK(same_bits(parts, whole));
  }
}

TEST_CASE("packed_gemm: NaN and infinity in one row stay in that row, and in B in that column") {
  Product<float> product(false, false, 9, 50, 20, 0.0f);
  product.a[static_cast<std::size_t>(3 * product.lda + 5)] = std::nanf("");
  product.b[static_cast<std::size_t>(7 * product.ldb + 49)] = std::numeric_limits<float>::infinity();
  const Packed<float> packed(false, product.k, product.n, product.b.data(), product.ldb);
  auto result = product.c;
  kernels::packed_gemm(product.m, product.n, product.k, product.a.data(), product.lda, packed.data(), 0.0f,
                       result.data(), product.ldc);
  for (std::int64_t i = 0; i < product.m; ++i) {
    for (std::int64_t j = 0; j < product.n; ++j) {
      const float x = result[static_cast<std::size_t>(i * product.ldc + j)];
      CHECK(std::isnan(x) == (i == 3));
      if (i != 3) CHECK(std::isinf(x) == (j == 49));
    }
  }
}

TEST_CASE_TEMPLATE("thin_gemm: every beta and number of rows, plain and transposed, and the edges", T, float,
                   double) {
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
          REQUIRE(product.error(product.by_thin_gemm(0, n)) < tolerance<T>);
        }
      }
    }
  }
}

TEST_CASE("thin_gemm: NaN and infinity in one row of A stay in that row, and in B in that column") {
  for (const bool tb : {false, true}) {
    Product<float> product(false, tb, 9, 37, 21, 0.0f);
    product.a[static_cast<std::size_t>(3 * product.lda + 20)] = std::numeric_limits<float>::quiet_NaN();
    const std::int64_t at = tb ? 36 * product.ldb + 5 : 5 * product.ldb + 36;
    product.b[static_cast<std::size_t>(at)] = std::numeric_limits<float>::infinity();
    const auto result = product.by_thin_gemm(0, product.n);
    for (std::int64_t i = 0; i < product.m; ++i) {
      for (std::int64_t j = 0; j < product.n; ++j) {
        const float value = result[static_cast<std::size_t>(i * product.ldc + j)];
        CHECK(std::isnan(value) == (i == 3));
        CHECK(std::isinf(value) == (i != 3 && j == 36));
      }
    }
  }
}

TEST_CASE_TEMPLATE("thin_gemm: columns have the same bits whatever is computed with them", T, float, double) {
  for (const bool tb : {false, true}) {
    const Product<T> product(false, tb, 10, 333, 300, T(1));
    const auto whole = product.by_thin_gemm(0, 333);
    auto split = product.by_thin_gemm(0, 101);
    const auto rest = product.by_thin_gemm(101, 333);
    for (std::int64_t i = 0; i < product.m; ++i) {
      const auto row = static_cast<std::ptrdiff_t>(i * product.ldc);
      std::copy_n(rest.begin() + row + 101, 333 - 101, split.begin() + row + 101);
    }
    CHECK(same_bits(split, whole));
  }
}

TEST_CASE_TEMPLATE("blocked_gemm: every transposition and beta, sizes at the borders of blocks", T, float,
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
        REQUIRE(product.error(product.by_blocked_gemm(1000, 1000)) < tolerance<T>);
      }
    }
  }
}

TEST_CASE_TEMPLATE("blocked_gemm: any split gives the same bits, and those of packed_gemm", T, float,
                   double) {
  for (const int flags : {0, 1, 2, 3}) {
    const Product<T> product(flags & 1, flags & 2, 110, 300, 530, T(1));
    const auto whole = product.by_blocked_gemm(1000, 1000);
    for (const auto& part : {std::pair<int, int>{1, 300}, {7, 300}, {110, 1}, {50, 64}, {96, 49}}) {
      CAPTURE(part.first);
      CAPTURE(part.second);
      CHECK(same_bits(product.by_blocked_gemm(part.first, part.second), whole));
    }
    if (product.ta) continue;
    const Packed<T> packed(product.tb, product.k, product.n, product.b.data(), product.ldb);
    auto result = product.c;
    kernels::packed_gemm(product.m, product.n, product.k, product.a.data(), product.lda, packed.data(), T(1),
                         result.data(), product.ldc);
    CHECK(same_bits(result, whole));
  }
}

TEST_CASE_TEMPLATE("parallel_gemm: right, and the same bits for any number of threads", T, float, double) {
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
      const auto alone = product.by_parallel_gemm();
      CAPTURE(size.m);
      CAPTURE(size.n);
      CAPTURE(size.k);
      CHECK(product.error(alone) < tolerance<T>);
      for (const int threads : {2, 3, 8}) {
        set_num_threads(threads);
        CHECK(same_bits(product.by_parallel_gemm(), alone));
      }
    }
  }
  set_num_threads(before);
}

TEST_CASE("parallel_gemm: sizes beyond BLAS are an error") {
  float x = 0;
  CHECK_THROWS_WITH_AS(
      parallel_gemm(false, false, std::int64_t{1} << 31, 1, 1, &x, 1, &x, 1, 0.0f, &x, 1),
      "matmul: a size or row distance of 2147483648 is beyond the 2147483647 of BLAS; split the "
      "product",
      Error);
}

}  // namespace rill
