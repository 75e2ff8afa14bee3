#include <gradcheck/rows.h>

#include <iterator>

namespace test {

std::vector<GradcheckRow> all_rows() {
  std::vector<GradcheckRow> all;
  for (auto family : {rows_unary, rows_binary, rows_view, rows_copy, rows_matmul}) {
    std::vector<GradcheckRow> rows = family();
    all.insert(all.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
  }
  return all;
}

}  // namespace test
