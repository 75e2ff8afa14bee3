#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <rill/core/autograd.h>
#include <rill/core/ops.h>
#include <rill/core/random.h>
#include <rill/optim/optim.h>
#include <support/same.h>

namespace {

using namespace rill;
using namespace rill::optim;

Tensor leaf(const Shape& shape, std::uint64_t seed, DType dtype = float32) {
  Rng rng(seed);
  return randn(shape, rng, dtype).set_requires_grad();
}

/// A name, and an optimiser of every kind with every kind of state.
struct Kind {
  std::string name;
  std::unique_ptr<Optimizer> (*make)(Parameters);
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"SGD", [](Parameters p) -> std::unique_ptr<Optimizer> { return std::make_unique<SGD>(p); }},
      {"SGD nesterov",
       [](Parameters p) -> std::unique_ptr<Optimizer> {
         return std::make_unique<SGD>(
             p, SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true});
       }},
      {"Adam",
       [](Parameters p) -> std::unique_ptr<Optimizer> {
         return std::make_unique<Adam>(p, AdamOptions{.lr = 0.1, .weight_decay = 0.1});
       }},
      {"AdamW amsgrad",
       [](Parameters p) -> std::unique_ptr<Optimizer> {
         return std::make_unique<AdamW>(p, AdamWOptions{.lr = 0.1, .amsgrad = true});
       }},
      {"RMSprop",
       [](Parameters p) -> std::unique_ptr<Optimizer> {
         return std::make_unique<RMSprop>(p, RMSpropOptions{.momentum = 0.5, .centered = true});
       }},
      {"Adagrad",
       [](Parameters p) -> std::unique_ptr<Optimizer> {
         return std::make_unique<Adagrad>(p,
                                          AdagradOptions{.lr_decay = 0.1, .initial_accumulator_value = 0.1});
       }},
      {"Adadelta", [](Parameters p) -> std::unique_ptr<Optimizer> { return std::make_unique<Adadelta>(p); }},
  };
  return all;
}

/// Three steps with gradients drawn from `seed`; the same numbers whatever the layout of the parameters.
void train(Optimizer& optimizer, std::vector<Tensor>& parameters, std::uint64_t seed = 7, int steps = 3) {
  Rng rng(seed);
  for (int k = 0; k < steps; ++k) {
    for (Tensor& p : parameters) p.set_grad(randn(p.shape(), rng, p.dtype()));
    optimizer.step();
  }
}

NamedTensors copied(const NamedTensors& tensors) {
  NamedTensors out;
  for (const auto& [name, t] : tensors) out.emplace_back(name, t.clone());
  return out;
}

void check_equal(const NamedTensors& a, const NamedTensors& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].first == b[i].first);
    CHECK(a[i].second.to_vector() == b[i].second.to_vector());
  }
}

TEST_CASE("optim: a quadratic is minimised by every optimiser") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    Tensor x = tensor({1.F, -2.F, 3.F}, {3}).set_requires_grad();
    const auto optimizer = kind.make({x});
    const auto loss = [&] { return sum(mul(x, x)); };
    const double before = loss().item();
    for (int k = 0; k < 50; ++k) {
      optimizer->zero_grad();
      loss().backward();
      optimizer->step();
    }
    CHECK(loss().item() < before);
  }
}

TEST_CASE("optim: a parameter without a gradient and its state do not move") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    Tensor moving = leaf({3}, 1);
    Tensor still = leaf({4}, 2);
    Tensor frozen = leaf({2}, 3).set_requires_grad(false);
    const auto optimizer = kind.make({moving, still, frozen});
    const NamedTensors before = copied(optimizer->state());
    const std::vector<double> numbers = still.to_vector();
    const std::uint32_t version = still.impl().storage->version();
    std::vector<Tensor> moved{moving};
    train(*optimizer, moved);
    CHECK(still.to_vector() == numbers);
    CHECK(still.impl().storage->version() == version);
    const NamedTensors after = optimizer->state();
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i].first[0] == '1' || before[i].first[0] == '2') {
        CHECK(after[i].second.to_vector() == before[i].second.to_vector());
      }
      if (before[i].first == "0.step") CHECK(after[i].second.item() == 3);
    }
  }
}

TEST_CASE("optim: a step counts as a change of the parameter") {
  Tensor x = leaf({3}, 1);
  SGD sgd({x});
  const Tensor y = sum(exp(x));
  x.set_grad(ones_like(x));
  const std::uint32_t before = x.impl().storage->version();
  sgd.step();
  CHECK(x.impl().storage->version() == before + 1);
  const Tensor kept = mul(x, x);
  sgd.step();
  CHECK_THROWS_AS(sum(kept).backward(), Error);
}

/// Parameters stored in one array: some columns, the transpose of others, one row; and a leaf that is a
/// transpose.
struct Strided {
  Tensor base = leaf({7, 40}, 5, float64);
  Tensor transposed = leaf({9, 4}, 6, float64).detach().t().set_requires_grad();
  std::vector<Tensor> parameters{base.part(base.detach().narrow(1, 0, 16)),
                                 base.part(base.detach().narrow(1, 16, 20).t()),
                                 base.part(base.detach().narrow(1, 36, 4).narrow(0, 2, 5)), transposed};
};

TEST_CASE("optim: strided parameters go the way of contiguous ones") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    Strided strided;
    std::vector<Tensor> plain;
    for (const Tensor& p : strided.parameters) plain.push_back(p.detach().clone().set_requires_grad());
    const std::vector<double> untouched = strided.base.detach().narrow(1, 36, 4).narrow(0, 0, 2).to_vector();
    const auto a = kind.make(strided.parameters);
    const auto b = kind.make(plain);
    train(*a, strided.parameters);
    train(*b, plain);
    for (std::size_t i = 0; i < plain.size(); ++i)
      CHECK(strided.parameters[i].to_vector() == plain[i].to_vector());
    check_equal(a->state(), b->state());
    CHECK(strided.base.detach().narrow(1, 36, 4).narrow(0, 0, 2).to_vector() == untouched);
  }
}

TEST_CASE("optim: a parameter whose numbers lie apart is updated too") {
  Tensor base = leaf({4, 6}, 5);
  Tensor column = base.part(base.detach().select(1, 2));
  const std::vector<double> before = base.to_vector();
  SGD sgd({column}, {.lr = 1});
  column.set_grad(ones_like(column));
  sgd.step();
  const std::vector<double> after = base.to_vector();
  for (std::size_t i = 0; i < after.size(); ++i) {
    CHECK(after[i] == static_cast<float>(before[i]) - (i % 6 == 2 ? 1.F : 0.F));
  }
}

TEST_CASE("optim: numbers that are listed twice are refused") {
  Tensor base = leaf({4, 6}, 5);
  Tensor left = base.part(base.detach().narrow(1, 0, 3));
  Tensor right = base.part(base.detach().narrow(1, 3, 3));
  Tensor middle = base.part(base.detach().narrow(1, 2, 2));
  CHECK_NOTHROW(SGD({left, right}));
  CHECK_THROWS_WITH_AS(SGD({left, left}), "SGD: parameters '0' and '1' share numbers; list each number once",
                       Error);
  CHECK_THROWS_WITH_AS(Adam(NamedTensors{{"all", base}, {"left", left}}),
                       "Adam: parameters 'all' and 'left' share numbers; list each number once", Error);
  CHECK_THROWS_AS(SGD({left, middle}), Error);
  CHECK_THROWS_AS(
      SGD(std::vector<SGD::Group>{{.params = {right}, .options = {}}, {.params = {middle}, .options = {}}}),
      Error);
  CHECK_THROWS_AS(SGD({zeros({1}).expand({3})}), Error);
}

TEST_CASE("optim: any number of threads gives the same bits") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    std::vector<std::vector<double>> results;
    for (int threads : {1, 2, 4}) {
      const test::Threads number(threads);
      std::vector<Tensor> parameters{leaf({301, 103}, 1), leaf({5}, 2), leaf({10'007}, 3, float64),
                                     leaf({0, 3}, 4)};
      const auto optimizer = kind.make(parameters);
      train(*optimizer, parameters, 7, 2);
      for (Tensor& p : parameters) p.set_grad(rill::full(p.shape(), 0.01, p.dtype()));
      results.emplace_back().push_back(optimizer->step_clipped(0.1).norm);
      for (const Tensor& p : parameters) {
        for (double v : p.to_vector()) results.back().push_back(v);
      }
    }
    CHECK(results[0] == results[1]);
    CHECK(results[0] == results[2]);
  }
}

TEST_CASE("optim: float32 follows float64") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    std::vector<Tensor> narrow{leaf({33, 7}, 1)};
    std::vector<Tensor> wide{narrow[0].detach().to(float64).set_requires_grad()};
    const auto a = kind.make(narrow);
    const auto b = kind.make(wide);
    Rng rng(3);
    for (int k = 0; k < 5; ++k) {
      const Tensor g = randn({33, 7}, rng);
      narrow[0].set_grad(g);
      wide[0].set_grad(g.to(float64));
      a->step();
      b->step();
    }
    const std::vector<double> x = narrow[0].to_vector();
    const std::vector<double> y = wide[0].to_vector();
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(x[i] == doctest::Approx(y[i]).epsilon(1e-4));
  }
}

TEST_CASE("optim: groups have options and rates of their own") {
  Tensor a = full({2}, 1);
  Tensor b = full({2}, 1);
  SGD sgd(std::vector<SGD::Group>{{.params = {a}, .options = {.lr = 0.1}},
                                  {.params = {b}, .options = {.lr = 0.2, .weight_decay = 1}}});
  CHECK(sgd.groups() == 2);
  const auto step = [&] {
    a.set_grad(ones({2}));
    b.set_grad(ones({2}));
    sgd.step();
  };
  step();
  CHECK(a.to_vector()[0] == doctest::Approx(0.9));
  CHECK(b.to_vector()[0] == doctest::Approx(0.6));
  sgd.set_lr(0.5, 1);
  CHECK(sgd.lr(0) == 0.1);
  CHECK(sgd.lr(1) == 0.5);
  sgd.set_lr(0);
  step();
  CHECK(b.to_vector()[0] == doctest::Approx(0.6));
  CHECK_THROWS_WITH_AS(sgd.lr(2), "SGD: group 2 is outside 0..1", Error);
  CHECK_THROWS_AS(sgd.set_lr(1, -1), Error);
  CHECK_THROWS_WITH_AS(sgd.set_lr(-1), "SGD: lr is -1; it must be finite and at least 0", Error);
}

TEST_CASE("optim: state saved to a file and loaded goes on as if nothing had happened") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    Strided one;
    const auto first = kind.make(one.parameters);
    train(*first, one.parameters);
    first->set_lr(0.02);
    const SafetensorsFile file = safetensors_from_bytes(safetensors_to_bytes(first->state()));

    Strided two;
    for (std::size_t i = 0; i < two.parameters.size(); ++i) {
      const NoGrad no_grad;
      two.parameters[i].copy_(one.parameters[i]);
    }
    const auto second = kind.make(two.parameters);
    second->load_state(file.tensors);
    CHECK(second->lr() == 0.02);
    train(*first, one.parameters, 8);
    train(*second, two.parameters, 8);
    for (std::size_t i = 0; i < two.parameters.size(); ++i) {
      CHECK(one.parameters[i].to_vector() == two.parameters[i].to_vector());
    }
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

TEST_CASE("optim: a state that does not fit is refused whole, with all its faults") {
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
      "Adam: the state does not fit; 'lr' is float32 [1], wanted float64 [1]; 'w.exp_avg' is float32 [3, "
      "2], wanted float32 [2, 3]; missing 'w.exp_avg_sq'; unexpected 'v.exp_avg_sq'; nothing was changed",
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

TEST_CASE("optim: options and parameters that make no sense are refused") {
  const Tensor x = leaf({2}, 1);
  CHECK_THROWS_WITH_AS(SGD({x}, {.lr = -0.5}), "SGD: lr is -0.5; it must be finite and at least 0", Error);
  CHECK_THROWS_AS(SGD({x}, {.lr = std::nan("")}), Error);
  CHECK_THROWS_WITH_AS(SGD({x}, {.momentum = -1}), "SGD: momentum is -1; it must be finite and at least 0",
                       Error);
  CHECK_THROWS_AS(SGD({x}, {.weight_decay = -1}), Error);
  CHECK_THROWS_AS(SGD({x}, {.nesterov = true}), Error);
  CHECK_THROWS_AS(SGD({x}, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}), Error);
  CHECK_THROWS_WITH_AS(Adam({x}, {.betas = {1, 0.9}}), "Adam: betas is 1; it must be at least 0 and below 1",
                       Error);
  CHECK_THROWS_AS(Adam({x}, {.eps = -1}), Error);
  CHECK_THROWS_WITH_AS(AdamW({x}, {.weight_decay = -1}),
                       "AdamW: weight_decay is -1; it must be finite and at least 0", Error);
  CHECK_THROWS_AS(RMSprop({x}, {.alpha = -1}), Error);
  CHECK_THROWS_AS(RMSprop({x}, {.momentum = -1}), Error);
  CHECK_THROWS_AS(Adagrad({x}, {.lr_decay = -1}), Error);
  CHECK_THROWS_AS(Adagrad({x}, {.initial_accumulator_value = -1}), Error);
  CHECK_THROWS_AS(Adadelta({x}, {.rho = 1.5}), Error);
  CHECK_THROWS_WITH_AS(SGD(std::vector<Tensor>{}), "SGD: there are no parameters", Error);
  CHECK_THROWS_WITH_AS(SGD({Tensor()}), "SGD: parameter '0' is undefined", Error);
  CHECK_THROWS_AS(SGD({arange(3)}), Error);
  CHECK_THROWS_WITH_AS(SGD({mul(x, x)}),
                       "SGD: parameter '0' is the result of 'mul'; only leaves can be trained", Error);
  CHECK_THROWS_WITH_AS(SGD(NamedTensors{{"a", x}, {"a", leaf({2}, 2)}}), "SGD: two parameters are named 'a'",
                       Error);
}

TEST_CASE("optim: a clipped step is clipping and a step, and leaves the gradients") {
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

TEST_CASE("optim: a step whose norm is not finite is skipped and counted") {
  for (double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    for (double norm_type : {1.0, 2.0, std::numeric_limits<double>::infinity()}) {
      std::vector<Tensor> parameters{leaf({300}, 1), leaf({4}, 2)};
      Adam adam(parameters);
      train(adam, parameters);
      const NamedTensors before = copied(adam.state());
      const std::vector<double> numbers = parameters[0].to_vector();
      Tensor g = zeros({300});
      g.data<float>()[299] = static_cast<float>(bad);
      parameters[0].set_grad(g);
      const ClippedStep done = adam.step_clipped(1, norm_type);
      CHECK(!done.applied);
      CHECK(!std::isfinite(done.norm));
      CHECK(adam.skipped_steps() == 1);
      CHECK(parameters[0].to_vector() == numbers);
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

TEST_CASE("optim: moments below the normal range become zero") {
  Tensor x = leaf({64}, 1);
  Adam adam({x});
  Tensor g = zeros({64});
  g.fill_(1e-30);
  x.set_grad(g);
  adam.step();
  x.set_grad(zeros({64}));
  for (int k = 0; k < 300; ++k) adam.step();
  for (const auto& [name, t] : adam.state()) {
    if (name != "0.exp_avg") continue;
    for (double v : t.to_vector()) CHECK(v == 0);
  }
}

}  // namespace
