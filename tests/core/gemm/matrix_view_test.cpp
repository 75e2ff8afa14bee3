#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include <rill/core/error.h>
#include <rill/core/gemm/matrix_view.h>
#include <rill/core/gemm/packed_matrix.h>

namespace rill {

TEST_CASE("MatrixView: transposes, blocks and slices are views of the same elements") {
  std::vector<int> x(24);
  std::iota(x.begin(), x.end(), 0);
  const MatrixView<int> m{x.data(), 4, 6};
  CHECK(m.ld == 6);
  CHECK(*m.at(2, 3) == 15);
  for (const MatrixView<const int> view : {MatrixView<const int>(m), MatrixView<const int>(m.t().t())}) {
    CHECK(*view.t().at(3, 2) == 15);
    CHECK(view.t().rows == 6);
    CHECK(*view.block(1, 2, 2, 2).at(1, 1) == 15);
    CHECK(*view.t().block(2, 1, 2, 2).at(1, 1) == 15);
    CHECK(*view.slice_rows(2, 4).at(0, 3) == 15);
    CHECK(*view.slice_columns(3, 5).at(2, 0) == 15);
    CHECK(view.slice_columns(3, 5).columns == 2);
    CHECK(*view.t().slice_rows(3, 5).at(0, 2) == 15);
    CHECK(view.t().slice_columns(2, 4).rows == 6);
  }
}

TEST_CASE("PackedMatrix: mismatched operands are an error that names the sizes") {
  std::vector<float> x(100);
  const PackedMatrix<float> packed(MatrixView<const float>{x.data(), 3, 5}, 1);
  CHECK(packed.rows() == 3);
  CHECK(packed.columns() == 5);
  CHECK_NOTHROW(packed.multiply({x.data(), 2, 3}, 0.0F, {x.data() + 50, 2, 5}));
  CHECK_THROWS_WITH_AS(packed.multiply({x.data(), 2, 4}, 0.0F, {x.data() + 50, 2, 5}),
                       "PackedMatrix: A 2 × 4 and C 2 × 5 do not fit the matrix, 3 × 5, or are transposed",
                       Error);
  const MatrixView<const float> transposed{x.data(), 3, 2};
  CHECK_THROWS_AS(packed.multiply(transposed.t(), 0.0F, {x.data() + 50, 2, 5}), Error);
}

}  // namespace rill
