#include <doctest/doctest.h>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nn/small_modules.h>
#include <rill/core/core.h>
#include <rill/nn/init.h>
#include <support/expect.h>

using namespace rill;
using namespace test;

TEST_CASE("module: parameters have dotted names in the order of the members") {
  const Tagger m = tagger(1);
  const auto names = names_of(m.named_parameters());
  REQUIRE(names.size() == 19);
  CHECK(names[0] == "embedding.weight");
  CHECK(names[1] == "gru.weight_ih_l0");
  CHECK(names[16] == "gru.bias_hh_l1_reverse");
  CHECK(names[17] == "score.weight");
  CHECK(names[18] == "score.bias");
  CHECK(m.parameters().size() == 19);
  std::int64_t count = 0;
  for (const auto& [name, p] : m.named_parameters()) count += p.numel();
  CHECK(m.num_parameters() == count);
  CHECK(m.parameter("score.bias").shape() == Shape{3});
  check_error([&] { m.parameter("score.weigth"); },
              "there is no 'score.weigth'; the module has 'embedding.weight', 'gru.");
  CHECK(m.to_string().find("score.weight: float32 [3, 10]\n") != std::string::npos);
}

TEST_CASE("module: named parameters share data and gradients with the leaves") {
  const Tagger m = tagger(1);
  sum(square(m(ids, lengths))).backward();
  const auto leaves = m.parameters();
  const auto named = m.named_parameters();
  const auto grads = m.named_grads();
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    CAPTURE(named[i].first);
    REQUIRE(named[i].second.grad().defined());
    CHECK(named[i].second.grad().shape() == named[i].second.shape());
    CHECK(sum(named[i].second.grad()).item() == doctest::Approx(sum(leaves[i].grad()).item()).epsilon(1e-4));
    CHECK(grads[i].first == named[i].first);
    CHECK(largest_difference(grads[i].second, named[i].second.grad()) == 0);
    CHECK(largest_difference(m.grad(named[i].first), grads[i].second) == 0);
    CHECK(leaves[i].name == named[i].first);
    CHECK(leaves[i].is_contiguous());
    nn::init::constant_(named[i].second, 2);
    CHECK(sum(leaves[i].detach()).item() == 2 * static_cast<double>(leaves[i].numel()));
  }
}

TEST_CASE("module: ops on a named parameter are recorded, and it can be frozen by name") {
  Rng rng(1);
  const nn::GRUCell cell({.input_size = 2, .hidden_size = 3}, rng);
  Tensor penalty = zeros({});
  for (const auto& [name, p] : cell.named_parameters()) {
    CHECK(p.requires_grad());
    penalty = penalty + sum(square(p));
  }
  penalty.backward();
  for (const auto& [name, p] : cell.named_parameters()) {
    CAPTURE(name);
    CHECK(largest_difference(p.grad(), p.detach() * 2) == 0);
  }
  for (auto& [name, p] : cell.named_parameters()) p.set_requires_grad(!name.starts_with("weight"));
  sum(cell(ones({1, 2}))).backward();
  CHECK(!cell.parameters()[0].requires_grad());
  CHECK(cell.parameters()[2].requires_grad());
}

TEST_CASE("module: a hook of a named parameter sees its gradient in the named shape and may replace it") {
  static_assert(!std::is_assignable_v<nn::ParameterView, Tensor>);
  Rng rng(1);
  const nn::Linear layer({.in_features = 2, .out_features = 3, .bias = false}, rng);
  Shape seen;
  layer.weight().register_hook([&](const Tensor& g) {
    seen = g.shape();
    return g * tensor({1.F, 10.F, 100.F}, {3, 1});
  });
  sum(layer(tensor({1.F, 2.F}, {1, 2}))).backward();
  CHECK(seen == Shape{3, 2});
  CHECK(layer.weight().grad().to_vector() == std::vector<double>{1, 2, 10, 20, 100, 200});
  layer.weight().register_hook([](const Tensor&) { return ones({3}); });
  CHECK_THROWS_WITH(sum(layer(ones({1, 2}))).backward(),
                    doctest::Contains("hook: the gradient is [3, 2], its replacement [3]"));
}

TEST_CASE("module: zero_grad and set_requires_grad reach every parameter") {
  Tagger m = tagger(1);
  sum(m(ids, lengths)).backward();
  m.zero_grad();
  for (const Tensor& p : m.parameters()) CHECK(!p.grad().defined());
  m.set_requires_grad(false);
  CHECK(!m(ids, lengths).requires_grad());
  m.set_requires_grad(true);
  CHECK(m(ids, lengths).requires_grad());
}

TEST_CASE("module: a conversion between forward and backward is an error, as is an older view") {
  Rng rng(1);
  nn::Linear m({.in_features = 3, .out_features = 2}, rng);
  const nn::ParameterView held = m.parameter("weight");
  const Tensor x = randn({4, 3}, rng);
  const Tensor loss = sum(m(x));
  m.to(float64);
  CHECK_THROWS_WITH(loss.backward(),
                    doctest::Contains("was converted from float32 to float64 after forward"));
  CHECK_THROWS_WITH(held.grad(),
                    doctest::Contains("was converted from float32 to float64 since it was taken"));
  sum(m(x.to(float64))).backward();
  CHECK(m.parameter("bias").grad().to_vector() == std::vector<double>{4, 4});
}

TEST_CASE("module: train and eval reach every submodule") {
  Tagger m = tagger(1);
  CHECK(largest_difference(m(ids, lengths), m(ids, lengths)) > 0);
  m.eval();
  CHECK(!m.training());
  CHECK(largest_difference(m(ids, lengths), m(ids, lengths)) == 0);
  m.train();
  CHECK(largest_difference(m(ids, lengths), m(ids, lengths)) > 0);
}

TEST_CASE("module: converting keeps values and ties and drops gradients") {
  Tied m = tied(1);
  const Tensor before = m(tensor<std::int64_t>({1, 2})).detach();
  sum(m(tensor<std::int64_t>({1, 2}))).backward();
  m.to(float64);
  for (const Tensor& p : m.parameters()) {
    CHECK(p.dtype() == float64);
    CHECK(!p.grad().defined());
  }
  CHECK(largest_difference(m(tensor<std::int64_t>({1, 2})), before) < 1e-5);
  CHECK(m.parameters().size() == 5);
  check_error([&] { m.to(int64); }, "float32 or float64, not int64");
}

TEST_CASE("module: a moved module keeps its parameters") {
  Tagger a = tagger(1);
  const Tensor weight = a.parameter("score.weight");
  const Tagger b = std::move(a);
  CHECK(b.parameter("score.weight").impl().storage == weight.impl().storage);
}

namespace {

/// A module with a second member, which is invalid.
class Broken final : public nn::Module {
 public:
  Broken(const char* name, nn::Members::View view) : name_(name), view_(std::move(view)) {}
  void members(nn::Members& m) override { m("w", w_)(name_, w_, view_); }

 private:
  const char* name_;
  nn::Members::View view_;
  Tensor w_ = zeros({2});
};

}  // namespace

TEST_CASE("module: duplicate names and views that are copies or repeat elements are errors") {
  const auto check_broken = [](const char* name, nn::Members::View view, const char* message) {
    check_error([&] { Broken(name, view).parameters(); }, message);
  };
  check_broken(
      "w", [](const Tensor& w) { return w; }, "members: duplicate name 'w'");
  check_broken(
      "v", [](const Tensor& w) { return w.clone(); }, "the view of 'v' is a copy");
  check_broken(
      "v",
      [](const Tensor& w) {
        return w.unsqueeze(0).expand({3, 2});
      },
      "'v' has 6 elements and its leaf 2");
}
