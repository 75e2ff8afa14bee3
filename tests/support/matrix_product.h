/// Matrix products for tests, and their errors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <rill/core/gemm/matrix_view.h>
#include <rill/core/random.h>

namespace rill::test {

/// An array aligned to a cache line, with all bits set (a NaN) until written.
template <class T>
class Aligned {
 public:
  explicit Aligned(std::int64_t size) : storage_(static_cast<std::size_t>(size) + 64 / sizeof(T)) {
    std::memset(storage_.data(), 0xff, storage_.size() * sizeof(T));
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

/// A and B, and C before the product, stored with padded rows.
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
    // With beta = 0 the old values must not be read.
    if (beta == T(0)) {
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) c[static_cast<std::size_t>(i * ldc + j)] = std::nan("");
      }
    }
  }

  /// The largest error of `result` against sums in float64, relative to 1 + the sum of the terms' magnitudes.
  double error(const std::vector<T>& result) const;

  T& left(std::int64_t i, std::int64_t p) {
    return a[static_cast<std::size_t>(ta ? p * lda + i : i * lda + p)];
  }
  T& right(std::int64_t p, std::int64_t j) {
    return b[static_cast<std::size_t>(tb ? j * ldb + p : p * ldb + j)];
  }
  T left(std::int64_t i, std::int64_t p) const {
    return a[static_cast<std::size_t>(ta ? p * lda + i : i * lda + p)];
  }
  T right(std::int64_t p, std::int64_t j) const {
    return b[static_cast<std::size_t>(tb ? j * ldb + p : p * ldb + j)];
  }

  /// Element (i, j) of a result.
  T at(const std::vector<T>& result, std::int64_t i, std::int64_t j) const {
    return result[static_cast<std::size_t>(i * ldc + j)];
  }

  MatrixView<const T> view_a() const {
    const MatrixView<const T> stored{a.data(), ta ? k : m, ta ? m : k, lda};
    return ta ? stored.t() : stored;
  }
  MatrixView<const T> view_b() const {
    const MatrixView<const T> stored{b.data(), tb ? n : k, tb ? k : n, ldb};
    return tb ? stored.t() : stored;
  }
  MatrixView<T> view_of(std::vector<T>& result) const { return {result.data(), m, n, ldc}; }

  /// C after f(a, b, c).
  template <class F>
  std::vector<T> by(F&& f) const {
    auto result = c;
    f(view_a(), view_b(), view_of(result));
    return result;
  }

  /// C after f(a, b, c) for each block of `rows` × `columns`.
  template <class F>
  std::vector<T> in_blocks(std::int64_t rows, std::int64_t columns, F&& f) const {
    auto result = c;
    for (std::int64_t i = 0; i < m; i += rows) {
      for (std::int64_t j = 0; j < n; j += columns) {
        const std::int64_t end = std::min(i + rows, m), right = std::min(j + columns, n);
        f(view_a().slice_rows(i, end), view_b().slice_columns(j, right),
          view_of(result).block(i, j, end - i, right - j));
      }
    }
    return result;
  }

  bool ta, tb;
  std::int64_t m, n, k;
  T beta;
  std::int64_t lda, ldb, ldc;
  std::vector<T> a, b, c;
};

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-14;

/// Bitwise equality, NaN included.
template <class T>
bool same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0);
}

}  // namespace rill::test
