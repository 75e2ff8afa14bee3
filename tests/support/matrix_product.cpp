#include <support/matrix_product.h>

namespace rill::test {

// Compiled once, with optimisation: the sums are most of the work of the tests of products.
template <class T>
double Product<T>::error(const std::vector<T>& result) const {
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
      const T* x = a.data() + (ta ? i : i * lda);
      const T* y = b.data() + (tb ? j * ldb : j);
      for (std::int64_t p = 0; p < k; ++p) {
        const double term = static_cast<double>(x[p * (ta ? lda : 1)]) * y[p * (tb ? 1 : ldb)];
        sum += term;
        size += std::abs(term);
      }
      const double relative = std::abs(result[at] - sum) / size;
      if (!(relative <= worst)) worst = relative;
    }
  }
  return worst;
}

template double Product<float>::error(const std::vector<float>& result) const;
template double Product<double>::error(const std::vector<double>& result) const;

}  // namespace rill::test
