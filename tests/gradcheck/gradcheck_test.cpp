#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <gradcheck/recorded_names.h>
#include <gradcheck/rows.h>
#include <rill/core/autograd.h>

namespace {

using Families = std::vector<std::vector<test::GradcheckRow> (*)()>;

// Each family is one test case. The table test below finds ops and modules that are in none of these lists.
const Families pointwise{test::rows_unary, test::rows_binary, test::rows_compare, test::rows_dropout};
const Families views_and_copies{test::rows_view, test::rows_copy};
const Families products{test::rows_matmul};
const Families reductions{test::rows_reduce, test::rows_softmax, test::rows_layer_norm};
const Families indexing{test::rows_index};
const Families losses{test::rows_loss};
const Families layers{test::rows_layers};
const Families recurrent{test::rows_recurrent};
const Families decoders{test::rows_bahdanau, test::rows_decoder};

std::vector<test::GradcheckRow> rows_of(const Families& families) {
  std::vector<test::GradcheckRow> all;
  for (const auto& rows : families) std::ranges::move(rows(), std::back_inserter(all));
  return all;
}

/// Compares the gradients of every row with central differences.
void check_rows(const Families& families) {
  double worst = 0;
  std::int64_t elements = 0;
  const std::vector<test::GradcheckRow> rows = rows_of(families);
  for (const test::GradcheckRow& row : rows) {
    const rill::GradcheckReport report = rill::gradcheck(row.f, row.inputs, row.options);
    INFO(row.op, ": ", report.message);
    CHECK(report.ok);
    worst = std::max(worst, report.worst);
    elements += report.elements;
  }
  fmt::print("gradcheck: {} rows, {} gradients, worst error {:.2e}\n", rows.size(), elements, worst);
  CHECK(worst < 1e-7);
}

std::set<std::string> missing(const std::set<std::string>& wanted, const std::set<std::string>& have) {
  std::set<std::string> out;
  std::set_difference(wanted.begin(), wanted.end(), have.begin(), have.end(), std::inserter(out, out.end()));
  return out;
}

}  // namespace

TEST_CASE("gradcheck: pointwise ops") { check_rows(pointwise); }
TEST_CASE("gradcheck: views and copies") { check_rows(views_and_copies); }
TEST_CASE("gradcheck: products") { check_rows(products); }
TEST_CASE("gradcheck: reductions") { check_rows(reductions); }
TEST_CASE("gradcheck: indexing") { check_rows(indexing); }
TEST_CASE("gradcheck: losses") { check_rows(losses); }
TEST_CASE("gradcheck: layers") { check_rows(layers); }
TEST_CASE("gradcheck: recurrent layers") { check_rows(recurrent); }
TEST_CASE("gradcheck: attention and decoders") { check_rows(decoders); }

TEST_CASE("gradcheck table: every recorded op and every module has a row") {
  std::set<std::string> seen, named;
  for (const Families& families :
       {pointwise, views_and_copies, products, reductions, indexing, losses, layers, recurrent, decoders}) {
    for (const test::GradcheckRow& row : rows_of(families)) {
      const rill::RecordObserver observer([&](const char* name) { seen.insert(name); });
      row.f(row.inputs);
      named.insert(row.op);
    }
  }

  std::set<std::string> recorded = test::recorded_names_below(RILL_SOURCE_DIR "/core");
  recorded.merge(test::recorded_names_below(RILL_SOURCE_DIR "/nn"));
  CHECK(recorded.size() > 60);
  for (const std::string& name : missing(recorded, seen))
    FAIL_CHECK("'", name, "' is recorded but has no gradcheck row");
  for (const std::string& name : missing(seen, recorded))
    FAIL_CHECK("'", name, "' was recorded, but no source contains the name");

  const std::set<std::string> modules = test::module_names_below(RILL_SOURCE_DIR "/nn");
  CHECK(modules.size() >= 10);
  for (const std::string& name : missing(modules, named))
    FAIL_CHECK("the module ", name, " has no gradcheck row");
}

TEST_CASE("gradcheck table: names of modules and recorded ops are read from the sources") {
  CHECK(test::module_names("class Linear final : public Module {") == std::set<std::string>{"Linear"});
  CHECK(test::module_names("class GRU final : public RecurrentLayers {") == std::set<std::string>{"GRU"});
  CHECK(test::module_names("class Members {").empty());
  CHECK(test::recorded_names(R"(return record("add_up", y, {x}, [](auto&, auto&) {});)") ==
        std::set<std::string>{"add_up"});
  CHECK(test::recorded_names("record(\n      \"far\", y") == std::set<std::string>{"far"});
  CHECK(test::recorded_names(R"(static constexpr const char* name = "tanh";)") ==
        std::set<std::string>{"tanh"});
  CHECK(test::recorded_names("gru_unit{\n    .name = \"gru\"") == std::set<std::string>{"gru"});
  CHECK(test::recorded_names("unrecorded(\"add\", y)").empty());
  CHECK(test::recorded_names_below(RILL_SOURCE_DIR "/core").contains("matmul"));
}
