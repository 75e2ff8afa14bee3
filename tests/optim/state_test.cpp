#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <rill/core/autograd.h>
#include <rill/core/io/safetensors.h>
#include <rill/optim/optim.h>
#include <support/optimizers.h>

namespace {

using namespace rill;
using namespace rill::optim;
using namespace test;

TEST_CASE("optim: training continues exactly from a state saved to a file") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    std::vector<Tensor> one{leaf({7, 16}, 1, float64), leaf({5}, 2, float64)};
    const auto first = kind.make(one);
    train(*first, one);
    first->set_lr(0.02);
    const SafetensorsFile file = safetensors_from_bytes(safetensors_to_bytes(first->state()));

    std::vector<Tensor> two;
    for (const Tensor& p : one) two.push_back(p.detach().clone().set_requires_grad());
    const auto second = kind.make(two);
    second->load_state(file.tensors);
    CHECK(second->lr() == 0.02);
    train(*first, one, 8);
    train(*second, two, 8);
    for (std::size_t i = 0; i < two.size(); ++i) CHECK(one[i].to_vector() == two[i].to_vector());
    check_equal(first->state(), second->state());
  }
}

TEST_CASE("optim: state names follow the parameters") {
  Adam adam(NamedTensors{{"encoder.weight", zeros({2, 3})}, {"", zeros({4})}}, {.amsgrad = true});
  std::vector<std::string> names;
  for (const auto& [name, t] : adam.state()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"lr", "skipped_steps", "encoder.weight.step",
                                          "encoder.weight.exp_avg", "encoder.weight.exp_avg_sq",
                                          "encoder.weight.max_exp_avg_sq", "1.step", "1.exp_avg",
                                          "1.exp_avg_sq", "1.max_exp_avg_sq"});
}

TEST_CASE("optim: state() is a snapshot of everything, moments included") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    std::vector<Tensor> parameters{leaf({4, 3}, 1)};
    const auto optimizer = kind.make(parameters);
    train(*optimizer, parameters, 7, 2);
    const NamedTensors kept = optimizer->state(), then = copied(kept);
    train(*optimizer, parameters, 8, 2);
    check_equal(kept, then);
    optimizer->load_state(kept);
    check_equal(optimizer->state(), then);
  }
}

TEST_CASE("optim: state is matched by name, whatever the order of the parameters") {
  const Tensor a = leaf({2, 2}, 1), b = leaf({2, 2}, 2);
  std::vector<Tensor> both{a, b};
  Adam first(NamedTensors{{"a", a}, {"b", b}}), second(NamedTensors{{"b", b}, {"a", a}});
  train(first, both);
  second.load_state(first.state());
  const auto find = [](const NamedTensors& state, const std::string& name) {
    for (const auto& [known, t] : state) {
      if (known == name) return t.to_vector();
    }
    return std::vector<double>();
  };
  for (const char* name : {"a.exp_avg", "b.exp_avg"})
    CHECK(find(first.state(), name) == find(second.state(), name));
  // Two groups may have parameters of the same name.
  const Adam grouped(std::vector<Adam::Group>{{.params = NamedTensors{{"a", a}}, .options = {}},
                                              {.params = NamedTensors{{"a", b}}, .options = {}}});
  CHECK(grouped.state()[5].first == "1.a.step");
}

TEST_CASE("optim: a mismatched state is rejected as a whole, and the error lists every fault") {
  std::vector<Tensor> parameters{leaf({2, 3}, 1)};
  Adam adam(NamedTensors{{"w", parameters[0]}});
  train(adam, parameters);
  const NamedTensors good = copied(adam.state());
  NamedTensors bad = copied(good);
  bad[3].second = zeros({3, 2});
  bad[4].first = "v.exp_avg_sq";
  bad[0].second = zeros({1});
  CHECK_THROWS_WITH_AS(
      adam.load_state(bad),
      "Adam: the state does not fit; 'lr' is float32 [1], expected float64 [1]; 'w.exp_avg' is float32 [3, "
      "2], expected float32 [2, 3]; missing 'w.exp_avg_sq'; unexpected 'v.exp_avg_sq'; nothing was changed",
      Error);
  bad = copied(good);
  bad[2].second = tensor({std::int64_t{-1}}, Shape{});
  bad[3].second.zero_();
  CHECK_THROWS_WITH_AS(adam.load_state(bad), "Adam: 'w.step' of the state is -1; it must be at least 0",
                       Error);
  bad = copied(good);
  bad[0].second.fill_(std::nan(""));
  bad[3].second.zero_();
  CHECK_THROWS_AS(adam.load_state(bad), Error);
  bad = copied(good);
  bad.push_back(bad.back());
  CHECK_THROWS_AS(adam.load_state(bad), Error);
  check_equal(adam.state(), good);
}

TEST_CASE("optim: step_clipped equals clipping and a step, and does not change the gradients") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    std::vector<Tensor> one{leaf({3, 5}, 1, float64), leaf({4}, 2, float64)};
    std::vector<Tensor> two{one[0].detach().clone().set_requires_grad(),
                            one[1].detach().clone().set_requires_grad()};
    const auto a = kind.make(one);
    const auto b = kind.make(two);
    Rng rng(3);
    for (int k = 0; k < 3; ++k) {
      for (std::size_t i = 0; i < 2; ++i) {
        const Tensor g = randn(one[i].shape(), rng, float64);
        one[i].set_grad(g);
        two[i].set_grad(g);
      }
      const std::vector<double> gradient = one[0].grad().to_vector();
      const ClippedStep done = a->step_clipped(k == 1 ? 100 : 0.5);
      CHECK(done.applied);
      CHECK(one[0].grad().to_vector() == gradient);
      CHECK(done.norm == clip_grad_norm_(two, k == 1 ? 100 : 0.5));
      b->step();
    }
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<double> x = one[i].to_vector();
      const std::vector<double> y = two[i].to_vector();
      for (std::size_t j = 0; j < x.size(); ++j) CHECK(x[j] == doctest::Approx(y[j]).epsilon(1e-12));
    }
  }
}

TEST_CASE("optim: a step with a non-finite norm is skipped and counted") {
  for (double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    for (double norm_type : {1.0, 2.0, std::numeric_limits<double>::infinity()}) {
      std::vector<Tensor> parameters{leaf({300}, 1), leaf({4}, 2)};
      Adam adam(parameters);
      train(adam, parameters);
      const NamedTensors before = copied(adam.state());
      const std::vector<double> values = parameters[0].to_vector();
      Tensor g = zeros({300});
      g.mutable_data<float>()[299] = static_cast<float>(bad);
      parameters[0].set_grad(g);
      const ClippedStep done = adam.step_clipped(1, norm_type);
      CHECK(!done.applied);
      CHECK(!std::isfinite(done.norm));
      CHECK(adam.skipped_steps() == 1);
      CHECK(parameters[0].to_vector() == values);
      NamedTensors after = copied(adam.state());
      CHECK(after[1].second.item() == 1);
      after[1].second.fill_(0);
      check_equal(after, before);
      parameters[0].set_grad(ones({300}));
      CHECK(adam.step_clipped(1, norm_type).applied);
    }
  }
  Tensor x = leaf({2}, 1);
  SGD sgd({x});
  CHECK_THROWS_AS(sgd.step_clipped(-1), Error);
  CHECK_THROWS_AS(sgd.step_clipped(1, 0), Error);
}

}  // namespace
