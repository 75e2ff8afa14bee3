#include <doctest/doctest.h>

#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <parity/program.h>
#include <parity/reference_set.h>
#include <parity/run.h>
#include <rill/core/core.h>
#include <rill/nn/recurrent/recurrent.h>
#include <tools/parity_set.h>

namespace {

using namespace rill;
using parity::Counts;
using test::ParitySet;
using Json = nlohmann::json;

struct Outcome {
  int status;
  std::string out, err;
};

Outcome run_program(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "rill-parity");
  std::ostringstream out, err;
  const int status = parity::program(static_cast<int>(arguments.size()), arguments.data(), out, err);
  return {status, out.str(), err.str()};
}

Outcome replayed(const ParitySet& set, bool in_float32 = false) {
  const std::string folder = set.write();
  std::vector<const char*> arguments{folder.c_str()};
  if (in_float32) arguments.push_back("--float32");
  return run_program(arguments);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Tensor values(std::vector<double> values, const Shape& shape) { return tensor(values, shape); }

void check_whole_set(bool in_float32) {
  const parity::ReferenceSet set(RILL_TEST_DATA);
  int optional = 0;
  for (const parity::Case& c : set.cases()) optional += c.optional;
  std::ostringstream out;
  const Counts counts = parity::run(RILL_TEST_DATA, {.filter = "", .float32 = in_float32}, out);
  CHECK_MESSAGE(counts.failed == 0, out.str());
  CHECK(counts.skipped <= optional);
  CHECK(counts.passed + counts.skipped == static_cast<int>(set.cases().size()));
  CHECK(counts.passed > 300);
}

}  // namespace

TEST_CASE("parity: the reference values hold in float64") { check_whole_set(false); }

TEST_CASE("parity: the reference values hold in float32 within its bounds") { check_whole_set(true); }

TEST_CASE("parity: the last line shows the counts, and the filter selects cases by id") {
  const Outcome all = run_program({RILL_TEST_DATA, "--filter", "op_softmax/log"});
  CHECK(all.status == 0);
  CHECK(all.out == "8 passed, 0 failed, 0 skipped\n");
  const Outcome none = run_program({RILL_TEST_DATA, "--filter", "no such case"});
  CHECK(none.status == 2);
  CHECK(contains(none.err, "no case of"));
  CHECK(contains(none.err, "'no such case'"));
}

TEST_CASE("parity: a mismatch is reported with tensor, index, both values and the tolerance") {
  ParitySet set;
  const Tensor x = values({1, 2, 3, 4}, {2, 2});
  set.add("op", "square", Json::object(),
          {{"in", "x", x},
           {"out", "out", values({1, 4, 9.5, 16}, {2, 2})},
           {"gout", "out", ones({2, 2}, float64)},
           {"grad", "in.x", values({2, 4, 6, 8}, {2, 2})}});
  const Outcome wrong = replayed(set);
  CHECK(wrong.status == 1);
  CHECK(
      wrong.out ==
      "FAILED case_0: out.out [1, 0]: got 9, want 9.5, tolerance 9.51e-09\n0 passed, 1 failed, 0 skipped\n");
}

TEST_CASE("parity: wrong gradients and shapes fail, and the worst element is reported") {
  ParitySet set;
  const Tensor x = values({1, 2}, {2}), y = values({1, 4}, {2}), dy = ones({2}, float64);
  set.add("op", "square", Json::object(),
          {{"in", "x", x}, {"out", "out", y}, {"gout", "out", dy}, {"grad", "in.x", values({2.5, 7}, {2})}});
  set.add("op", "square", Json::object(), {{"in", "x", x}, {"out", "out", values({1, 4}, {2, 1})}});
  set.add("op", "square", Json::object(), {{"in", "x", x}, {"out", "other", y}});
  const Outcome wrong = replayed(set);
  CHECK(wrong.status == 1);
  CHECK(contains(wrong.out,
                 "case_0: grad.in.x [1]: got 4, want 7, tolerance 7.01e-09 (2 of 2 numbers are wrong)"));
  CHECK(contains(wrong.out, "case_1: out.out: got shape [2], want [2, 1]"));
  CHECK(contains(wrong.out, "case_2: out.other: nothing was computed for it"));
  CHECK(contains(wrong.out, "0 passed, 3 failed, 0 skipped"));
}

TEST_CASE("parity: only an optional case may be skipped") {
  ParitySet set;
  const Tensor x = values({1, 2}, {2});
  const std::vector<test::RoleTensor> tensors{{"in", "x", x}, {"out", "out", x}};
  set.add("op", "frobnicate", Json::object(), tensors);
  set.add("op", "frobnicate", Json::object(), tensors)["optional"] = true;
  set.add("module", "Transformer", Json::object(), tensors);
  set.add("other", "abs", Json::object(), tensors);
  set.add("op", "abs", {{"power", 2}}, tensors);
  set.add("op", "abs", Json::object(), tensors)["optional"] = true;
  const Outcome some = replayed(set);
  CHECK(some.status == 1);
  CHECK(contains(some.out, "FAILED case_0: rill has no op 'frobnicate'"));
  CHECK(contains(some.out, "skipped case_1: rill has no op 'frobnicate'"));
  CHECK(contains(some.out, "FAILED case_2: rill has no module 'Transformer'"));
  CHECK(contains(some.out, "FAILED case_3: cases of kind 'other' are not known"));
  CHECK(contains(some.out, "FAILED case_4: argument 'power' is not known here"));
  CHECK(contains(some.out, "1 passed, 4 failed, 1 skipped"));
}

TEST_CASE("parity: an optional case with a wrong result fails") {
  ParitySet set;
  set.add("op", "abs", Json::object(),
          {{"in", "x", ones({2}, float64)}, {"out", "out", zeros({2}, float64)}})["optional"] = true;
  CHECK(contains(replayed(set).out, "0 passed, 1 failed, 0 skipped"));
}

TEST_CASE("parity: cases without a result, a tensor or an argument fail") {
  ParitySet set;
  const Tensor x = values({1, 2}, {2});
  set.add("op", "abs", Json::object(), {{"in", "x", x}});
  set.add("op", "abs", Json::object(), {{"in", "x", x}})["tensors"]["out"] = {"out"};
  set.add("op", "softmax", Json::object(), {{"in", "x", x}, {"out", "out", x}});
  set.add("op", "abs", Json::object(), {{"in", "x", x}, {"out", "out", x}})["file"] = "absent.safetensors";
  const Outcome wrong = replayed(set);
  CHECK(contains(wrong.out, "case_0: the index names no result to compare"));
  CHECK(contains(wrong.out, "case_1: numbers.safetensors has no tensor 'case_1/out.out'"));
  CHECK(contains(wrong.out, "case_2: argument 'dim' is missing"));
  CHECK(contains(wrong.out, "absent.safetensors"));
  CHECK(contains(wrong.out, "0 passed, 4 failed, 0 skipped"));
}

TEST_CASE("parity: infinities must be equal, and NaN is wrong") {
  ParitySet set;
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor x = values({0, 1}, {2});
  set.add("op", "log", Json::object(), {{"in", "x", x}, {"out", "out", values({-infinity, 0}, {2})}});
  set.add("op", "log", Json::object(), {{"in", "x", x}, {"out", "out", values({infinity, 0}, {2})}});
  set.add("op", "log", Json::object(), {{"in", "x", values({-1}, {1})}, {"out", "out", values({0}, {1})}});
  const Outcome some = replayed(set);
  CHECK(contains(some.out, "case_1: out.out [0]: got -inf, want inf"));
  CHECK(contains(some.out, "case_2: out.out [0]: got -nan") !=
        contains(some.out, "case_2: out.out [0]: got nan"));
  CHECK(contains(some.out, "1 passed, 2 failed, 0 skipped"));
}

TEST_CASE("parity: float32 is held to ten times PyTorch's own error, or else to the set's default") {
  ParitySet set;
  const Tensor x = values({1, 2}, {2});
  const auto with_error = [&](double off, Json error) {
    Json& c =
        set.add("op", "square", Json::object(), {{"in", "x", x}, {"out", "out", values({1, 4 + off}, {2})}});
    if (!error.is_null()) c["f32_max_abs_err"] = std::move(error);
  };
  with_error(9e-5, 1e-5);
  with_error(1.1e-4, 1e-5);
  with_error(3e-6, 0.0);  // 8 · 2^-23 · 4 = 3.8e-6
  with_error(5e-6, 0.0);
  with_error(4e-4, nullptr);  // 1e-5 + 1e-4 · 4
  with_error(5e-4, nullptr);
  const Outcome some = replayed(set, true);
  CHECK(contains(some.out, "3 passed, 3 failed, 0 skipped"));
  for (const char* id : {"case_1", "case_3", "case_5"}) CHECK(contains(some.out, id));
  CHECK(contains(replayed(set).out, "0 passed, 6 failed, 0 skipped"));
}

TEST_CASE("parity: an unreadable directory or index is an error with status 2") {
  const auto check_fails = [](const Outcome& o, const std::string& text) {
    CHECK(o.status == 2);
    CHECK_MESSAGE(contains(o.err, text), o.err);
  };
  check_fails(run_program({"/no/such/folder"}), "'/no/such/folder' is not a directory");
  CHECK(run_program({}).status == 2);
  CHECK(run_program({"--help"}).status == 0);
  const ParitySet empty;
  check_fails(run_program({empty.folder().c_str()}), "index.json");
  const auto with_index = [&](const std::string& text) {
    empty.write_index(text);
    return run_program({empty.folder().c_str()});
  };
  check_fails(with_index("{ not json"), "not JSON");
  check_fails(with_index("[]"), "'format' is missing");
  check_fails(with_index(R"({"format": 2, "cases": []})"), "its format is 2");
  check_fails(with_index(R"({"format": 1, "cases": 3})"), "'cases' is not a list");
  check_fails(with_index(R"({"format": 1, "cases": [{"id": "a"}]})"), "case 0 (\"a\"): 'file' is missing");
  ParitySet twice;
  for (int i = 0; i < 2; ++i) {
    twice.add("op", "abs", Json::object(),
              {{"in", "x", ones({1}, float64)}, {"out", "out", ones({1}, float64)}})["id"] = "a";
  }
  check_fails(replayed(twice), "the id 'a' comes twice");
}

namespace {

/// Adds a ragged case of three bidirectional layers, with values of the definition in plain ops.
void add_layers(ParitySet& set, const char* op, nn::Cell cell) {
  Rng rng(11);
  nn::Recurrent layers(
      {.cell = cell,
       .layers =
           {.input_size = 3, .hidden_size = 4, .num_layers = 3, .batch_first = true, .bidirectional = true}},
      rng);
  layers.to(float64);
  Tensor x = randn({5, 6, 3}, rng, float64), h0 = randn({6, 5, 4}, rng, float64);
  const Tensor lengths = tensor<std::int64_t>({2, 6, 1, 6, 3});
  x.set_requires_grad();
  h0.set_requires_grad();
  Tensor states = x.transpose(0, 1);
  std::vector<Tensor> last;
  for (std::int64_t k = 0; k < 3; ++k) {
    const nn::RecurrentOutput out = nn::reference::recurrent_sequence(
        cell, states, layers.weights(k), {.state = h0.narrow(0, 2 * k, 2), .lengths = lengths});
    states = out.output;
    last.push_back(out.last.h);
  }
  const Tensor output = states.transpose(0, 1), h_n = cat(last);
  const std::vector<Tensor> roots{output, h_n},
      gradients{randn(output.shape(), rng, float64), randn(h_n.shape(), rng, float64)};
  backward(roots, gradients);
  std::vector<test::RoleTensor> tensors{{"in", "input", x},
                                        {"in", "h_0", h0},
                                        {"in", "lengths", lengths},
                                        {"out", "output", output.contiguous()},
                                        {"out", "h_n", h_n},
                                        {"gout", "output", gradients[0]},
                                        {"gout", "h_n", gradients[1]},
                                        {"grad", "in.input", x.grad()},
                                        {"grad", "in.h_0", h0.grad()}};
  for (const auto& [name, p] : layers.named_parameters()) {
    tensors.push_back({"param", name, p});
    tensors.push_back({"grad", "param." + name, p.grad()});
  }
  set.add("module", op,
          {{"input_size", 3},
           {"hidden_size", 4},
           {"num_layers", 3},
           {"batch_first", true},
           {"bidirectional", true},
           {"packed", true}},
          tensors);
}

}  // namespace

TEST_CASE("parity: deeper, bidirectional, ragged layers are replayed") {
  ParitySet set;
  add_layers(set, "GRU", nn::Cell::gru);
  add_layers(set, "RAU", nn::Cell::rau);
  const Outcome out = replayed(set);
  CHECK(out.out == "2 passed, 0 failed, 0 skipped\n");
}

TEST_CASE("parity: a wrong trajectory and unknown optimisers and options fail") {
  ParitySet set;
  Rng rng(4);
  const Tensor x = randn({4, 2}, rng, float64), y = randn({4, 3}, rng, float64),
               w = randn({2, 3}, rng, float64), b = zeros({3}, float64);
  const std::vector<test::RoleTensor> tensors{
      {"in", "x", x},    {"in", "y", y},         {"param", "w", w},
      {"param", "b", b}, {"param", "unused", b}, {"out", "w", zeros({2, 2, 3}, float64)}};
  set.add("optim", "SGD", {{"lr", 0.1}, {"steps", 2}}, tensors);
  set.add("optim", "SGD", {{"lr", 0.1}, {"steps", 3}}, tensors);
  set.add("optim", "LBFGS", {{"lr", 0.1}, {"steps", 2}}, tensors);
  set.add("optim", "SGD", {{"lr", 0.1}, {"steps", 2}, {"wobble", 1}}, tensors);
  const Outcome out = replayed(set);
  CHECK(contains(out.out, "case_0: out.w ["));
  CHECK(contains(out.out, "case_1: out.w: got shape [3, 2, 3], want [2, 2, 3]"));
  CHECK(contains(out.out, "case_2: rill has no optimiser 'LBFGS'"));
  CHECK(contains(out.out, "case_3: argument 'wobble' is not known here"));
}
