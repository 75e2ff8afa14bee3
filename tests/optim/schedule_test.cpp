#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <rill/core/io/safetensors.h>
#include <rill/optim/optim.h>

namespace {

using namespace rill;
using namespace rill::optim;

SGD::Group group(double lr) { return {.params = {zeros({1})}, .options = {.lr = lr}}; }

TEST_CASE("schedule: every group starts from its own rate") {
  SGD sgd(std::vector<SGD::Group>{group(1), group(0.1)});
  ExponentialLR schedule(sgd, {.gamma = 0.5});
  schedule.step();
  schedule.step();
  CHECK(sgd.lr(0) == 0.25);
  CHECK(sgd.lr(1) == 0.025);
  CHECK(schedule.last_epoch() == 2);
}

TEST_CASE("schedule: the rate of epoch 0 is set at construction") {
  SGD sgd({group(1)});
  LinearLR schedule(sgd, {.start_factor = 0.25, .end_factor = 1, .total_iters = 3});
  CHECK(sgd.lr() == 0.25);
  const std::vector<double> want{0.5, 0.75, 1, 1};
  for (double lr : want) {
    schedule.step();
    CHECK(sgd.lr() == doctest::Approx(lr).epsilon(1e-15));
  }
}

TEST_CASE("schedule: cosine annealing rises again after T_max") {
  SGD sgd({group(1)});
  CosineAnnealingLR schedule(sgd, {.T_max = 2, .eta_min = 0.5});
  const std::vector<double> want{0.75, 0.5, 0.75, 1, 0.75};
  for (double lr : want) {
    schedule.step();
    CHECK(sgd.lr() == doctest::Approx(lr).epsilon(1e-15));
  }
}

TEST_CASE("schedule: milestones may be unordered, repeated and 0") {
  SGD sgd({group(1)});
  MultiStepLR schedule(sgd, {.milestones = {2, 0, 2}, .gamma = 0.5});
  CHECK(sgd.lr() == 0.5);
  schedule.step();
  CHECK(sgd.lr() == 0.5);
  schedule.step();
  CHECK(sgd.lr() == 0.125);
}

TEST_CASE("schedule: one function for each group") {
  SGD sgd(std::vector<SGD::Group>{group(1), group(1)});
  LambdaLR schedule(sgd, {[](std::int64_t k) { return 1.0 / static_cast<double>(k + 1); },
                          [](std::int64_t) { return 0.5; }});
  schedule.step();
  CHECK(sgd.lr(0) == 0.5);
  CHECK(sgd.lr(1) == 0.5);
  CHECK_THROWS_WITH_AS(LambdaLR(sgd, std::vector<LambdaLR::Factor>(3)),
                       "LambdaLR: 3 functions for 2 groups; give one, or one for each", Error);
  CHECK_THROWS_AS(LambdaLR(sgd, LambdaLR::Factor()), Error);
}

TEST_CASE("schedule: an invalid rate is an error and changes nothing") {
  SGD sgd(std::vector<SGD::Group>{group(1), group(2)});
  LambdaLR schedule(sgd, [](std::int64_t k) { return k < 2 ? 1.0 : -1.0; });
  schedule.step();
  CHECK_THROWS_WITH_AS(schedule.step(),
                       "LambdaLR: the rate of epoch 2 is -1; it must be finite and at least 0", Error);
  CHECK(schedule.last_epoch() == 1);
  CHECK(sgd.lr(0) == 1);
}

TEST_CASE("schedule: a loaded state continues whatever the rate at construction") {
  SGD one({group(0.4)});
  CosineAnnealingLR first(one, {.T_max = 10});
  for (int k = 0; k < 4; ++k) first.step();
  const SafetensorsFile file = safetensors_from_bytes(safetensors_to_bytes(first.state()));

  SGD two({group(one.lr())});
  CosineAnnealingLR second(two, {.T_max = 10});
  second.load_state(file.tensors);
  CHECK(two.lr() == one.lr());
  CHECK(second.base_lrs() == std::vector<double>{0.4});
  for (int k = 0; k < 9; ++k) {
    first.step();
    second.step();
    CHECK(two.lr() == one.lr());
  }
  NamedTensors bad = first.state();
  bad[0].second = tensor({std::int64_t{-1}}, Shape{});
  CHECK_THROWS_AS(second.load_state(bad), Error);
  bad = first.state();
  bad[1].second = tensor({-0.1}, {1});
  CHECK_THROWS_AS(second.load_state(bad), Error);
  CHECK_THROWS_AS(second.load_state({}), Error);
  CHECK(two.lr() == one.lr());
}

TEST_CASE("schedule: epochs of the cooldown do not count") {
  SGD sgd({group(1)});
  ReduceLROnPlateau schedule(sgd, {.factor = 0.5, .patience = 0, .cooldown = 2});
  const std::vector<double> want{1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125};
  for (double lr : want) {
    schedule.step(1);
    CHECK(sgd.lr() == lr);
  }
}

TEST_CASE("schedule: a loaded plateau state continues") {
  const std::vector<double> metrics{5, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3};
  const ReduceLROnPlateauOptions options{.factor = 0.5, .patience = 1, .cooldown = 1};
  SGD one({group(1)});
  ReduceLROnPlateau first(one, options);
  for (std::size_t k = 0; k < 5; ++k) first.step(metrics[k]);
  SGD two({group(1)});
  two.load_state(one.state());
  ReduceLROnPlateau second(two, options);
  second.load_state(safetensors_from_bytes(safetensors_to_bytes(first.state())).tensors);
  for (std::size_t k = 5; k < metrics.size(); ++k) {
    first.step(metrics[k]);
    second.step(metrics[k]);
    CHECK(one.lr() == two.lr());
  }
  CHECK(one.lr() < 0.5);
  CHECK(second.last_epoch() == 14);
  CHECK(second.best() == 3);
  CHECK_THROWS_AS(second.load_state({}), Error);
}

TEST_CASE("schedule: a NaN metric is never an improvement") {
  SGD sgd({group(1)});
  ReduceLROnPlateau schedule(sgd, {.patience = 1});
  for (int k = 0; k < 2; ++k) schedule.step(std::nan(""));
  CHECK(sgd.lr() == doctest::Approx(0.1));
  CHECK(schedule.best() == std::numeric_limits<double>::infinity());
}

TEST_CASE("schedule: invalid options are rejected and change no rate") {
  SGD sgd({group(1)});
  CHECK_THROWS_WITH_AS(StepLR(sgd, {.step_size = 0}), "StepLR: step_size is 0; it must be at least 1", Error);
  CHECK_THROWS_AS(ExponentialLR(sgd, {.gamma = std::nan("")}), Error);
  CHECK_THROWS_AS(MultiStepLR(sgd, {.milestones = {1}, .gamma = std::nan("")}), Error);
  CHECK_THROWS_AS(CosineAnnealingLR(sgd, {.T_max = 0}), Error);
  CHECK_THROWS_AS(CosineAnnealingLR(sgd, {.T_max = 5, .eta_min = std::nan("")}), Error);
  CHECK_THROWS_WITH_AS(LinearLR(sgd, {.start_factor = 0}),
                       "LinearLR: start_factor is 0; it must be above 0 and at most 1", Error);
  CHECK_THROWS_AS(LinearLR(sgd, {.end_factor = 2}), Error);
  CHECK_THROWS_AS(LinearLR(sgd, {.total_iters = 0}), Error);
  CHECK_THROWS_WITH_AS(ReduceLROnPlateau(sgd, {.factor = 1}),
                       "ReduceLROnPlateau: factor is 1; it must be at least 0 and below 1", Error);
  CHECK_THROWS_AS(ReduceLROnPlateau(sgd, {.patience = -1}), Error);
  CHECK_THROWS_AS(ReduceLROnPlateau(sgd, {.threshold = 1}), Error);
  CHECK_THROWS_AS(ReduceLROnPlateau(sgd, {.cooldown = -1}), Error);
  CHECK_THROWS_AS(ReduceLROnPlateau(sgd, {.min_lr = -1}), Error);
  CHECK_THROWS_AS(ReduceLROnPlateau(sgd, {.eps = -1}), Error);
  CHECK(sgd.lr() == 1);
}

}  // namespace
