#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <rill/core/core.h>
#include <rill/core/io/checkpoint.h>
#include <rill/nn/layers/dropout.h>
#include <rill/nn/layers/linear.h>
#include <rill/optim/optim.h>

namespace {

using namespace rill;

/// A model with dropout and its complete training state.
struct Run {
  nn::Linear model;
  nn::Dropout dropout;
  optim::Adam adam;
  optim::CosineAnnealingLR schedule;
  Rng rng;
  std::int64_t step = 0;
  double best = INFINITY;
  Checkpoint checkpoint;

  explicit Run(std::uint64_t seed, Rng init = Rng(3))
      : model({.in_features = 3, .out_features = 2}, init),
        dropout({.p = 0.5}, init),
        adam(model.parameters(), {.lr = 0.1}),
        schedule(adam, {.T_max = 10}),
        rng(seed) {
    checkpoint.add("model", model).add("dropout", dropout).add("optimizer", adam).add("schedule", schedule);
    checkpoint.add("rng", rng).add("step", step).add("best", best);
  }

  void train(int steps) {
    for (int i = 0; i < steps; ++i, ++step) {
      adam.zero_grad();
      const Tensor x = tensor({rng.uniform(), rng.uniform(), rng.uniform()}, {1, 3}).to(float32);  // 3 draws
      const Tensor loss = sum(square(dropout(model(x))));
      loss.backward();
      adam.step();
      schedule.step();
      best = std::min(best, loss.item());
    }
  }
  std::vector<std::byte> bytes() const { return safetensors_to_bytes(checkpoint.state()); }
};

std::filesystem::path temporary(const char* name) {
  return std::filesystem::temp_directory_path() / ("rill-checkpoint-" + std::string(name) + ".safetensors");
}

}  // namespace

TEST_CASE("checkpoint: a run resumes exactly after an odd number of draws, and its metadata is restored") {
  const std::filesystem::path file = temporary("resume");
  Run whole(1), first(1), second(2, Rng(9));
  whole.train(8);
  first.train(5);
  CHECK(first.rng.state().counter % 2 == 1);
  first.checkpoint.save(file, {{"note", "five steps"}});
  CHECK(second.checkpoint.load(file) == Checkpoint::Metadata{{"note", "five steps"}});
  CHECK(second.step == 5);
  CHECK(second.best == first.best);
  CHECK(second.bytes() == first.bytes());
  second.train(3);
  CHECK(second.bytes() == whole.bytes());
  std::filesystem::remove(file);
}

TEST_CASE("checkpoint: tensors are named by section and object") {
  const Run run(1);
  std::vector<std::string> names;
  for (const auto& [name, t] : run.checkpoint.state()) names.push_back(name);
  for (const char* name : {"model/weight", "model/bias", "optimizer/lr", "schedule/last_epoch", "rng/state",
                           "step", "best", "dropout/counter:calls"}) {
    CAPTURE(name);
    CHECK(std::count(names.begin(), names.end(), name) == 1);
  }
}

TEST_CASE("checkpoint: a mismatched state is rejected as a whole, and the error lists every mismatch") {
  Run run(1);
  run.train(2);
  const auto before = run.bytes();
  const auto check_rejects = [&](NamedTensors state, const char* why) {
    CHECK_THROWS_WITH_AS(run.checkpoint.load_state(state), doctest::Contains(why), Error);
    CHECK(run.bytes() == before);
  };
  Run other(5, Rng(7));
  other.train(3);
  const NamedTensors good = other.checkpoint.state();
  const auto index = [&](const std::string& name) {
    return static_cast<std::size_t>(
        std::find_if(good.begin(), good.end(), [&](const auto& t) { return t.first == name; }) -
        good.begin());
  };
  NamedTensors bad = good;
  bad[index("schedule/last_epoch")].second = scalar(1.0, float32);
  check_rejects(bad, "schedule: ");
  check_rejects(bad, "'last_epoch' is float32 []");
  bad.erase(bad.begin() + static_cast<std::ptrdiff_t>(index("model/bias")));
  check_rejects(bad, "model: ");
  check_rejects(bad, "missing 'bias'");
  bad = good;
  bad.emplace_back("extra/weight", zeros({2}));
  check_rejects(bad, "unexpected 'extra'");
  bad = good;
  bad[index("rng/state")].second = Tensor();
  check_rejects(bad, "rng: rng: the state does not fit; 'state' is undefined");
  bad = good;
  bad.push_back(good.front());
  check_rejects(bad, "duplicate");
  bad = good;
  bad[index("schedule/last_epoch")].second = tensor({std::int64_t{-1}}, Shape{});
  check_rejects(bad, "'last_epoch' of the state is -1");
  bad = good;
  bad[index("optimizer/skipped_steps")].second = tensor({std::int64_t{-1}}, Shape{});
  check_rejects(bad, "'skipped_steps' of the state is -1");
  check_rejects({}, "missing");
  check_rejects({}, "nothing was changed; add the same objects as when saving, under the same names");
  run.checkpoint.load_state(good);
  CHECK(run.bytes() == other.bytes());
}

TEST_CASE("checkpoint: errors name the file, and section names are unique") {
  const std::filesystem::path file = temporary("errors");
  save_safetensors(file, {{"weight", zeros({2})}});
  Run run(1);
  CHECK_THROWS_WITH_AS(run.checkpoint.load(file), doctest::Contains(file.c_str()), Error);
  std::filesystem::remove(file);
  CHECK_THROWS_WITH_AS(run.checkpoint.load(file), doctest::Contains(file.c_str()), Error);
  std::int64_t counter = 0;
  CHECK_THROWS_WITH_AS(run.checkpoint.add("step", counter), "checkpoint: duplicate name 'step'", Error);
  CHECK_THROWS_AS(run.checkpoint.add("a/b", counter), Error);
  CHECK_THROWS_AS(run.checkpoint.add("", counter), Error);
}
