#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <vector>

#include <nn/small_modules.h>
#include <rill/core/core.h>
#include <rill/nn/gradcheck.h>
#include <rill/nn/recurrent/rau.h>
#include <support/expect.h>

using namespace rill;
using test::check_error;
using test::Tied;
using test::tied;

namespace {

/// x · w + b, which can leave b out of its members or its result.
class Affine final : public nn::Module {
 public:
  Tensor w = ones({2, 3}).set_requires_grad();
  Tensor b = ones({3}).set_requires_grad();
  bool lists_b = true;
  bool uses_b = true;

  Tensor operator()(const Tensor& x) const { return uses_b ? matmul(x, w) + b : matmul(x, w); }
  void members(nn::Members& m) override {
    m("w", w);
    if (lists_b) m("b", b);
  }
};

/// A copy of a matrix whose gradient is too large by 1 at one element.
Tensor wrong_at(const Tensor& x, std::int64_t row, std::int64_t column) {
  return record("wrong", x.detach().clone(), {x}, [row, column](const Tensor& dy, Grads& d) {
    Tensor gradient = dy.clone();
    gradient.select(0, row).select(0, column).fill_(dy.select(0, row).select(0, column).item() + 1);
    d[0].give(gradient);
  });
}

}  // namespace

TEST_CASE("nn gradcheck: all parameters are covered, ties included") {
  Tied m = tied(1);
  m.to(float64);
  const Tensor some = tensor<std::int64_t>({1, 4});
  const auto report = nn::gradcheck(m, [&](const auto&) { return std::vector<Tensor>{m(some)}; });
  CHECK_MESSAGE(report.ok, report.message);
  CHECK(report.elements == 3 * m.num_parameters());
  CHECK(m.parameter("layers.2.weight").ref() == m.parameter("embedding.weight").ref());
  const std::vector<Tensor> wrong{ones({2}, float64)};
  check_error([&] { nn::Substitution(m, std::span(wrong)); }, "1 tensors for a module with 5 parameters");
}

TEST_CASE("nn gradcheck: a report names the parameter and the index in its shape") {
  Rng rng(1);
  nn::Linear layer({.in_features = 3, .out_features = 2}, rng);  // stored as [3, 2]
  layer.to(float64);
  const Tensor x = ones({1, 3}, float64);
  const auto linear_report = nn::gradcheck(layer, [&](const std::vector<Tensor>&) -> std::vector<Tensor> {
    return {layer(x), wrong_at(layer.weight().leaf, 2, 0)};
  });
  CHECK(!linear_report);
  CHECK(linear_report.message.starts_with("weight [0, 2] (contiguous): analytic "));
  CHECK(linear_report.message.find(", numeric ") != std::string::npos);
  CHECK(linear_report.input == 0);
  CHECK(linear_report.index == Dims{2, 0});

  nn::RAUCell cell({.input_size = 2, .hidden_size = 3}, rng);  // gates r, z, h, a concatenated in [2, 12]
  cell.to(float64);
  const auto gate_report = nn::gradcheck(cell,
                                         [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
                                           return {cell(in[0]), wrong_at(cell.weights().ih, 1, 3 + 2)};
                                         },
                                         {ones({1, 2}, float64)});
  CHECK(gate_report.message.starts_with("weight_xz [1, 2] (contiguous)"));

  const auto input_report = nn::gradcheck(
      layer,
      [&](const std::vector<Tensor>& in) -> std::vector<Tensor> { return {layer(wrong_at(in[1], 0, 1))}; },
      {x, ones({1, 3}, float64).set_requires_grad()}, {.layouts = false, .names = {"x"}});
  CHECK(input_report.message.starts_with("input 1 [0, 1]"));
  CHECK(input_report.input == 3);
}

TEST_CASE("nn gradcheck: leaves that are not parameters and parameters without a gradient are named") {
  const Tensor x = ones({1, 2});
  Affine good;
  CHECK_NOTHROW(nn::check_members(good, sum(good(x))));

  Affine unlisted;
  unlisted.lists_b = false;
  check_error(
      [&] { nn::check_members(unlisted, sum(unlisted(x))); },
      "check_members: a leaf float32 [3] that 'add' reads wants a gradient but is no parameter; list it");

  Affine frozen;
  frozen.b.set_requires_grad(false);
  check_error([&] { nn::check_members(frozen, sum(frozen(x))); },
              "check_members: 'b' wants no gradient; call set_requires_grad()");

  Affine unused;
  unused.uses_b = false;
  check_error([&] { nn::check_members(unused, sum(unused(x))); },
              "check_members: 'b' gets no gradient: the result does not depend on it");

  frozen.w.set_requires_grad(false);
  check_error(
      [&] { nn::check_members(frozen, sum(frozen(x))); },
      "the result has no gradient: nothing that it was computed from wants one; 'w' wants no gradient");
}

TEST_CASE("nn gradcheck: inputs may require gradients, and a freed graph is an error") {
  Affine m;
  const Tensor x = ones({1, 2}).set_requires_grad();
  check_error([&] { nn::check_members(m, sum(m(x))); }, "a leaf float32 [1, 2] that 'matmul' reads");
  CHECK_NOTHROW(nn::check_members(m, sum(m(x)), {x}));
  const Tensor loss = sum(m(x));
  loss.backward();
  check_error([&] { nn::check_members(m, loss, {x}); },
              "the graph of 'sum' was freed by an earlier backward");
}

TEST_CASE("nn gradcheck: a module with an unlisted member is rejected") {
  Affine m;
  m.lists_b = false;
  m.to(float64);
  m.b = ones({3}, float64).set_requires_grad();
  const auto f = [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{m(in[0])}; };
  const std::vector<Tensor> inputs{ones({1, 2}, float64).set_requires_grad()};
  check_error([&] { nn::gradcheck(m, f, inputs); },
              "gradcheck: a leaf float64 [3] that 'add' reads wants a gradient but is no parameter");
  m.lists_b = true;
  CHECK(nn::gradcheck(m, f, inputs).ok);
}
