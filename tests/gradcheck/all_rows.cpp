#include <gradcheck/rows.h>

#include <iterator>

namespace test {

std::vector<GradcheckRow> all_rows() {
  std::vector<GradcheckRow> all;
  for (auto family : {rows_unary, rows_binary, rows_view, rows_copy, rows_matmul, rows_reduce, rows_softmax,
                      rows_index, rows_compare, rows_dropout, rows_layer_norm, rows_loss, rows_recurrent,
                      rows_bahdanau, rows_layers, rows_decoder}) {
    std::vector<GradcheckRow> rows = family();
    all.insert(all.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
  }
  return all;
}

}  // namespace test
