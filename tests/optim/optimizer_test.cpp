#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include <rill/core/autograd.h>
#include <rill/core/ops.h>
#include <rill/core/random.h>
#include <rill/optim/optim.h>
#include <support/optimizers.h>
#include <support/same.h>

namespace {

using namespace rill;
using namespace rill::optim;
using namespace test;

TEST_CASE("optim: every optimiser reduces a quadratic") {
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

TEST_CASE("optim: a parameter without a gradient and its state are unchanged") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    Tensor moving = leaf({3}, 1);
    Tensor still = leaf({4}, 2);
    Tensor frozen = leaf({2}, 3).set_requires_grad(false);
    const auto optimizer = kind.make({moving, still, frozen});
    const NamedTensors before = copied(optimizer->state());
    const std::vector<double> values = still.to_vector();
    const std::uint32_t version = still.impl().storage->version();
    std::vector<Tensor> moved{moving};
    train(*optimizer, moved);
    CHECK(still.to_vector() == values);
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

TEST_CASE("optim: a step bumps the version of the parameter") {
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

TEST_CASE("optim: a strided leaf is rejected by name") {
  const Tensor base = leaf({5, 9}, 1);
  const Tensor left = base.detach().narrow(1, 0, 4);  // [5, 4] of a [5, 9] array
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    CHECK_THROWS_WITH_AS(kind.make(NamedTensors{{"left", left}}), doctest::Contains("parameter 'left'"),
                         Error);
  }
  CHECK_THROWS_WITH_AS(SGD(NamedTensors{{"left", left}}),
                       "SGD: parameter 'left' of shape [5, 4] has strides [9, 1]; a leaf is a dense array: "
                       "train a contiguous() copy",
                       Error);
  // The same gradient on a dense copy: 3 everywhere has norm 3 √20, so max_norm 1 moves by 1 / √20.
  Tensor dense = left.contiguous().set_requires_grad();
  const std::vector<double> before = dense.to_vector();
  SGD sgd({dense}, {.lr = 1});
  dense.set_grad(full({5, 4}, 3));
  CHECK(sgd.step_clipped(1).norm == doctest::Approx(3 * std::sqrt(20.0)));
  const std::vector<double> after = dense.to_vector();
  for (std::size_t i = 0; i < after.size(); ++i)
    CHECK(before[i] - after[i] == doctest::Approx(0.2236).epsilon(1e-3));
}

TEST_CASE("optim: a step without any gradient is an error") {
  for (const Kind& kind : kinds()) {
    const auto optimizer = kind.make({leaf({3}, 1), leaf({2}, 2)});
    CHECK_THROWS_WITH_AS(optimizer->step(), doctest::Contains("no parameter has a gradient"), Error);
    CHECK_THROWS_WITH_AS(optimizer->step_clipped(1), doctest::Contains("no parameter has a gradient"), Error);
  }
}

TEST_CASE("optim: parameters that share elements are rejected") {
  Tensor base = leaf({4, 6}, 5);
  const auto rows = [&](std::int64_t first, std::int64_t count) {
    return base.detach().narrow(0, first, count).set_requires_grad();
  };
  const Tensor top = rows(0, 2), bottom = rows(2, 2), middle = rows(1, 2);
  CHECK_NOTHROW(SGD({top, bottom}));
  CHECK_THROWS_WITH_AS(SGD({top, top}), "SGD: parameters '0' and '1' share elements; list each element once",
                       Error);
  CHECK_THROWS_WITH_AS(Adam(NamedTensors{{"all", base}, {"top", top}}),
                       "Adam: parameters 'all' and 'top' share elements; list each element once", Error);
  CHECK_THROWS_AS(SGD({top, middle}), Error);
  CHECK_THROWS_AS(
      SGD(std::vector<SGD::Group>{{.params = {bottom}, .options = {}}, {.params = {middle}, .options = {}}}),
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

TEST_CASE("optim: float32 matches float64") {
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

TEST_CASE("optim: each group has its own options and rate") {
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

TEST_CASE("optim: invalid options and parameters are rejected") {
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

TEST_CASE("optim: centred RMSprop stays finite under constant gradients") {
  std::vector<Tensor> parameters{leaf({4096}, 1)};
  RMSprop rmsprop(parameters, {.alpha = 0.5, .centered = true});
  Rng rng(2);
  const Tensor g = randn({4096}, rng);
  for (int k = 0; k < 100; ++k) {
    parameters[0].set_grad(g);
    rmsprop.step();
  }
  int bad = 0;
  for (double v : parameters[0].to_vector()) bad += !std::isfinite(v);
  CHECK(bad == 0);
}

TEST_CASE("optim: denormal moments are flushed to zero") {
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
