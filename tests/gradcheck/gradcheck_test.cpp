#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include <gradcheck/recorded_names.h>
#include <gradcheck/rows.h>
#include <rill/core/autograd.h>

namespace {

std::set<std::string> missing(const std::set<std::string>& wanted, const std::set<std::string>& have) {
  std::set<std::string> out;
  std::set_difference(wanted.begin(), wanted.end(), have.begin(), have.end(), std::inserter(out, out.end()));
  return out;
}

}  // namespace

TEST_CASE(
    "gradcheck: every op, layer and loss agrees with central differences, and every recorded op has a row") {
  std::set<std::string> seen;
  double worst = 0;
  std::int64_t elements = 0;
  const std::vector<test::GradcheckRow> rows = test::all_rows();
  for (const test::GradcheckRow& row : rows) {
    std::set<std::string> names;
    const rill::RecordObserver observer([&](const char* name) { names.insert(name); });
    const rill::GradcheckReport report = rill::gradcheck(row.f, row.inputs, row.options);
    INFO(row.op, ": ", report.message);
    CHECK(report.ok);
    worst = std::max(worst, report.worst);
    elements += report.elements;
    seen.merge(names);
  }
  fmt::print("gradcheck: {} rows, {} gradients, worst error {:.2e}\n", rows.size(), elements, worst);
  CHECK(worst < 1e-7);

  std::set<std::string> recorded = test::recorded_names_below(RILL_SOURCE_DIR "/core");
  recorded.merge(test::recorded_names_below(RILL_SOURCE_DIR "/nn"));
  CHECK(recorded.size() > 60);
  for (const std::string& name : missing(recorded, seen))
    FAIL_CHECK("'", name, "' is recorded but has no gradcheck row");
  for (const std::string& name : missing(seen, recorded))
    FAIL_CHECK("'", name, "' was recorded under a name no source holds");

  std::set<std::string> named;
  for (const test::GradcheckRow& row : rows) named.insert(row.op);
  const std::set<std::string> modules = test::module_names_below(RILL_SOURCE_DIR "/nn");
  CHECK(modules.size() >= 10);
  for (const std::string& name : missing(modules, named))
    FAIL_CHECK("the module ", name, " has no gradcheck row");
}

TEST_CASE("gradcheck table: the names of modules and recorded ops are read from the sources") {
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
