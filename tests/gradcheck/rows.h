/// The rows of the gradient-check table, by family.
#pragma once

#include <vector>

#include <support/gradcheck_table.h>

namespace test {

std::vector<GradcheckRow> rows_unary();
std::vector<GradcheckRow> rows_binary();
std::vector<GradcheckRow> rows_view();
std::vector<GradcheckRow> rows_copy();
std::vector<GradcheckRow> rows_matmul();
std::vector<GradcheckRow> rows_reduce();
std::vector<GradcheckRow> rows_softmax();
std::vector<GradcheckRow> rows_index();
std::vector<GradcheckRow> rows_compare();
std::vector<GradcheckRow> rows_dropout();
std::vector<GradcheckRow> rows_layer_norm();
std::vector<GradcheckRow> rows_loss();
std::vector<GradcheckRow> rows_layers();
std::vector<GradcheckRow> rows_recurrent();
std::vector<GradcheckRow> rows_bahdanau();
std::vector<GradcheckRow> rows_decoder();

}  // namespace test
