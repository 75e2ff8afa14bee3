#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <nn/small_modules.h>
#include <rill/core/core.h>
#include <rill/nn/init.h>
#include <support/expect.h>

using namespace rill;
using namespace test;

namespace {

/// A module with an Rng.
class Noisy final : public nn::Module {
 public:
  explicit Noisy(Rng& rng) : rng_(rng.split()) {}
  std::uint64_t next() { return rng_.next(); }
  void members(nn::Members& m) override { m.rng("rng", rng_); }

 private:
  Rng rng_;
};

NamedTensors cloned(const NamedTensors& state) {
  NamedTensors copy;
  for (const auto& [name, t] : state) copy.emplace_back(name, t.clone());
  return copy;
}

}  // namespace

TEST_CASE("module: a module's Rng resumes after any number of draws") {
  Rng seed(1);
  Noisy a(seed), b(seed);
  for (int draws = 0; draws < 4; ++draws) {
    b.load_counters(a.counters());
    const std::uint64_t next = a.next();
    CHECK(b.next() == next);
  }
  CHECK(names_of(a.counters()) == std::vector<std::string>{"rng.counter", "rng.seed", "rng.stream"});
}

TEST_CASE("module: a state dict transfers values to another module") {
  Tagger a = tagger(1), b = tagger(2);
  a.eval();
  b.eval();
  CHECK(largest_difference(a(ids, lengths), b(ids, lengths)) > 1e-3);
  b.load_state_dict(a.state_dict());
  CHECK(largest_difference(a(ids, lengths), b(ids, lengths)) == 0);
  CHECK(!a.state_dict()[0].second.requires_grad());
}

TEST_CASE("module: a state of another floating dtype is converted") {
  Tagger a = tagger(1), b = tagger(2);
  a.to(float64);
  b.load_state_dict(a.state_dict());
  CHECK(b.parameter("score.weight").dtype() == float32);
  CHECK(largest_difference(a.parameter("score.weight").to(float32), b.parameter("score.weight")) == 0);
}

TEST_CASE(
    "module: a file restores the state, and a failed strict load lists every mismatch and changes nothing") {
  const auto path = std::filesystem::temp_directory_path() / "rill_module_test.safetensors";
  Tagger a = tagger(1), b = tagger(2);
  a.save(path);
  b.load(path);
  CHECK(largest_difference(a.parameter("gru.weight_hh_l1_reverse"),
                           b.parameter("gru.weight_hh_l1_reverse")) == 0);

  Rng rng(3);
  nn::Linear other({.in_features = 4, .out_features = 5}, rng);
  check_error([&] { other.load(path); },
              "rill_module_test.safetensors: missing 'weight', 'bias'; unexpected 'embedding.weight', ");
  std::filesystem::remove(path);
  check_error([&] { other.load(path); }, "rill_module_test.safetensors");

  auto state = cloned(other.state_dict());
  state[0].second = ones({5, 3});
  state[1].first = "beyas";
  const Tensor before = other.parameter("weight").clone();
  check_error(
      [&] { other.load_state_dict(state); },
      "load: state dict: 'weight' is [5, 3] in the state, [5, 4] in the module; missing 'bias'; unexpected "
      "'beyas'; nothing was changed; load the state of a module with the same options");
  CHECK(largest_difference(before, other.parameter("weight")) == 0);
  state[0].second = ones({5, 4});
  const nn::IncompatibleKeys skipped = other.load_state_dict(state, false);
  CHECK(skipped.missing_keys == std::vector<std::string>{"bias"});
  CHECK(skipped.unexpected_keys == std::vector<std::string>{"beyas"});
  check_error([&] { other.load_state_dict(state); }, "nothing was changed; strict = false skips such names");
  CHECK(sum(other.parameter("weight").detach()).item() == 20);
  state[0].second = ones({5, 3});
  check_error([&] { other.load_state_dict(state, false); }, "[5, 3] in the state");
  state[0].second = ones({5, 4}, int64);
  check_error([&] { other.load_state_dict(state, false); },
              "'weight' is int64 in the state, float32 in the module");
  state[1].first = "weight";
  check_error([&] { other.load_state_dict(state); },
              "load: state dict: two tensors are named 'weight'; remove one");
}

TEST_CASE("module: a strict load skips nothing, and files can be loaded either way") {
  const auto path = std::filesystem::temp_directory_path() / "rill_state_dict_test.safetensors";
  Rng rng(1);
  nn::Linear with({.in_features = 2, .out_features = 3}, rng);
  nn::Linear without({.in_features = 2, .out_features = 3, .bias = false}, rng);
  const nn::IncompatibleKeys none = with.load_state_dict(with.state_dict());
  CHECK(none.missing_keys.empty());
  CHECK(none.unexpected_keys.empty());
  without.save(path);
  check_error([&] { with.load(path); }, "missing 'bias'; nothing was changed; strict = false skips");
  CHECK(with.load(path, false).missing_keys == std::vector<std::string>{"bias"});
  CHECK(largest_difference(with.weight(), without.weight()) == 0);
  with.save(path);
  CHECK(without.load(path, false).unexpected_keys == std::vector<std::string>{"bias"});
  std::filesystem::remove(path);
}

TEST_CASE("module: an undefined tensor in a state is an error that names it") {
  Tied m = tied(1);
  NamedTensors state = cloned(m.state_dict());
  state[1].second = Tensor();
  check_error([&] { m.load_state_dict(state); },
              "load: state dict: 'layers.0.weight' is undefined in the state");
  check_error([&] { m.load_state_dict(state, false); }, "'layers.0.weight' is undefined in the state");
  state = cloned(m.state_dict());
  state.emplace_back("layers.2.weight", Tensor());
  check_error([&] { m.load_state_dict(state); }, "'layers.2.weight' is undefined in the state");
}

TEST_CASE("module: tied tensors with the same NaN are equal, and tensors with NaN load") {
  Tied m = tied(1);
  NamedTensors state = cloned(m.state_dict());
  state[0].second.select(0, 0).fill_(NAN);
  state.emplace_back("layers.2.weight", state[0].second.clone());
  CHECK_NOTHROW(m.load_state_dict(state));
  CHECK(std::isnan(m.parameter("embedding.weight").to_vector()[0]));
}

TEST_CASE("module: tied tensors are saved once, count once and stay tied") {
  Tied a = tied(1), b = tied(2);
  CHECK(names_of(a.named_parameters()) == std::vector<std::string>{"embedding.weight", "layers.0.weight",
                                                                   "layers.0.bias", "layers.1.weight",
                                                                   "layers.1.bias", "layers.2.weight"});
  CHECK(names_of(a.state_dict()) == std::vector<std::string>{"embedding.weight", "layers.0.weight",
                                                             "layers.0.bias", "layers.1.weight",
                                                             "layers.1.bias", "steps"});
  CHECK(a.num_parameters() == 18 + 2 * 12);
  CHECK(a.parameters().size() == 5);
  b.load_state_dict(a.state_dict());
  CHECK(largest_difference(b.parameter("layers.2.weight"), a.parameter("embedding.weight")) == 0);
  CHECK(b.parameter("layers.2.weight").ref() == b.parameter("embedding.weight").ref());

  auto state = cloned(a.state_dict());
  state.emplace_back("layers.2.weight", state[0].second.clone());
  b.load_state_dict(state);
  state.back().second.fill_(7);
  check_error([&] { b.load_state_dict(state); },
              "'embedding.weight' and 'layers.2.weight' differ, but are one tensor in the module");
  state.erase(state.begin());
  b.load_state_dict(state);
  CHECK(sum(b.parameter("embedding.weight").detach()).item() == 7 * 18);
}

TEST_CASE("module: buffers are part of the state but not of the parameters") {
  Tied a = tied(1), b = tied(2);
  Tensor(a.steps()).fill_(41);
  b.load_state_dict(a.state_dict());
  CHECK(b.steps().item() == 41);
  auto state = cloned(a.state_dict());
  state.back().second = zeros({1});
  check_error([&] { b.load_state_dict(state); }, "'steps' is float32 in the state, int64 in the module");
  b.to(float64);
  CHECK(b.steps().dtype() == int64);
}

TEST_CASE("module: a clone is deep and keeps values, dtype, mode, counters and ties") {
  Tagger m = tagger(1);
  m(ids, lengths);
  m.to(float64);
  m.parameters()[0].set_requires_grad(false);
  const Tagger copy = nn::clone(m);
  CHECK(copy.parameter("score.weight").dtype() == float64);
  CHECK(!copy.parameters()[0].requires_grad());
  CHECK(copy.training());
  CHECK(copy.counters() == m.counters());
  CHECK(largest_difference(copy(ids, lengths), m(ids, lengths)) == 0);
  nn::init::zeros_(m.parameter("score.weight"));
  CHECK(amax(abs(copy.parameter("score.weight").detach())).item() > 0);
  m.eval();
  CHECK(!nn::clone(m).training());

  const Tied both = nn::clone(tied(1));
  CHECK(both.parameter("layers.2.weight").ref() == both.parameter("embedding.weight").ref());
  Tied apart = tied(1, false), one = tied(1);
  check_error([&] { nn::copy_state(one, apart); },
              "'layers.2.weight' is tied in one of original and copy only");
}

TEST_CASE("module: counters of other modules are rejected") {
  Tagger m = tagger(1);
  auto counters = m.counters();
  REQUIRE(counters.size() == 6);
  CHECK(counters[0].first == "dropout.calls");
  CHECK(counters[3].first == "gru.dropout.calls");
  counters[0].first = "drop.calls";
  check_error([&] { m.load_counters(counters); }, "missing ['dropout.calls'], unexpected ['drop.calls']");
}
