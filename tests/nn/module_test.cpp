#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <rill/core/core.h>
#include <rill/nn/gradcheck.h>
#include <rill/nn/init.h>
#include <rill/nn/layers/dropout.h>
#include <rill/nn/layers/embedding.h>
#include <rill/nn/layers/linear.h>
#include <rill/nn/recurrent/gru.h>
#include <support/expect.h>

using namespace rill;
using test::check_error;
using test::largest_difference;

namespace {

struct TaggerOptions {
  std::int64_t words = 10, embed = 4, hidden = 5, tags = 3;
};

/// A module of one's own, as the documentation shows it.
class Tagger final : public nn::Module {
 public:
  Tagger(TaggerOptions o, Rng& rng)
      : options_(o),
        embedding_({.num_embeddings = o.words, .embedding_dim = o.embed}, rng),
        gru_({.input_size = o.embed, .hidden_size = o.hidden, .num_layers = 2, .bidirectional = true}, rng),
        dropout_({.p = 0.5}, rng),
        score_({.in_features = 2 * o.hidden, .out_features = o.tags}, rng) {}

  Tensor operator()(const Tensor& ids, const Tensor& lengths) const {
    const auto [states, last] = gru_(embedding_(ids), {.lengths = lengths});
    return score_(dropout_(states));
  }
  const TaggerOptions& options() const { return options_; }
  void members(nn::Members& m) override {
    m("embedding", embedding_)("gru", gru_)("dropout", dropout_)("score", score_);
  }

 private:
  TaggerOptions options_;
  nn::Embedding embedding_;
  nn::GRU gru_;
  nn::Dropout dropout_;
  nn::Linear score_;
};

struct TiedOptions {
  bool tie = true;
};

/// Output weights shared with the embedding, a buffer, children in a vector.
class Tied final : public nn::Module {
 public:
  Tied(TiedOptions o, Rng& rng) : options_(o), embedding_({.num_embeddings = 6, .embedding_dim = 3}, rng) {
    for (int i = 0; i < 2; ++i)
      layers_.emplace_back(nn::LinearOptions{.in_features = 3, .out_features = 3}, rng);
    layers_.emplace_back(nn::LinearOptions{.in_features = 3, .out_features = 6, .bias = false}, rng);
    if (o.tie) layers_[2].tie_weight(embedding_.weight());
  }
  Tensor operator()(const Tensor& ids) const { return layers_[2](layers_[1](layers_[0](embedding_(ids)))); }
  const TiedOptions& options() const { return options_; }
  const Tensor& steps() const { return steps_; }
  void members(nn::Members& m) override {
    m("embedding", embedding_)("layers", layers_).buffer("steps", steps_);
  }

 private:
  TiedOptions options_;
  nn::Embedding embedding_;
  std::vector<nn::Linear> layers_;
  Tensor steps_ = zeros({1}, int64);
};

/// Draws from a generator of its own.
class Noisy final : public nn::Module {
 public:
  explicit Noisy(Rng& rng) : rng_(rng.split()) {}
  std::uint64_t next() { return rng_.next(); }
  void members(nn::Members& m) override { m.rng("rng", rng_); }

 private:
  Rng rng_;
};

const Tensor ids = tensor<std::int64_t>({1, 2, 3, 4, 5, 0}, {3, 2});
const Tensor lengths = tensor<std::int64_t>({3, 2});

Tagger tagger(std::uint64_t seed) {
  Rng rng(seed);
  return Tagger({}, rng);
}

Tied tied(std::uint64_t seed, bool tie = true) {
  Rng rng(seed);
  return Tied({.tie = tie}, rng);
}

template <class T>
std::vector<std::string> names_of(const std::vector<std::pair<std::string, T>>& named) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : named) names.push_back(name);
  return names;
}

NamedTensors cloned(const NamedTensors& state) {
  NamedTensors copy;
  for (const auto& [name, t] : state) copy.emplace_back(name, t.clone());
  return copy;
}

}  // namespace

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

TEST_CASE("module: computing with a named parameter is recorded, and one can be frozen by its name") {
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

TEST_CASE("module: a Rng of its own is resumed after any number of draws") {
  Rng seed(1);
  Noisy a(seed), b(seed);
  for (int draws = 0; draws < 4; ++draws) {
    b.load_counters(a.counters());
    const std::uint64_t next = a.next();
    CHECK(b.next() == next);
  }
  CHECK(names_of(a.counters()) == std::vector<std::string>{"rng.counter", "rng.seed", "rng.stream"});
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

TEST_CASE("module: a state dict carries one module's values to another") {
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
    "module: a file brings the state back, and a strict load says all that is wrong and changes nothing") {
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
      "'beyas'; nothing was changed");
  CHECK(largest_difference(before, other.parameter("weight")) == 0);
  state[0].second = ones({5, 4});
  other.load_state_dict(state, false);
  CHECK(sum(other.parameter("weight").detach()).item() == 20);
  state[0].second = ones({5, 3});
  check_error([&] { other.load_state_dict(state, false); }, "[5, 3] in the state");
  state[0].second = ones({5, 4}, int64);
  check_error([&] { other.load_state_dict(state, false); },
              "'weight' is int64 in the state, float32 in the module");
  state[1].first = "weight";
  check_error([&] { other.load_state_dict(state); }, "two tensors named 'weight'");
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

TEST_CASE("module: a conversion between forward and backward is an error, and so is a view from before it") {
  Rng rng(1);
  nn::Linear m({.in_features = 3, .out_features = 2}, rng);
  const nn::ParameterView held = m.parameter("weight");
  const Tensor x = randn({4, 3}, rng);
  const Tensor loss = sum(m(x));
  m.to(float64);
  CHECK_THROWS_WITH(loss.backward(), doctest::Contains("was converted from float32 to float64 since"));
  CHECK_THROWS_WITH(held.grad(),
                    doctest::Contains("was converted from float32 to float64 since it was taken"));
  sum(m(x.to(float64))).backward();
  CHECK(m.parameter("bias").grad().to_vector() == std::vector<double>{4, 4});
}

TEST_CASE("module: a clone is deep, of the same values, dtype, mode, counters and ties") {
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

TEST_CASE("module: train and eval reach every module within") {
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

TEST_CASE("module: counters of other modules are refused") {
  Tagger m = tagger(1);
  auto counters = m.counters();
  REQUIRE(counters.size() == 6);
  CHECK(counters[0].first == "dropout.calls");
  CHECK(counters[3].first == "gru.dropout.calls");
  counters[0].first = "drop.calls";
  check_error([&] { m.load_counters(counters); }, "missing ['dropout.calls'], unexpected ['drop.calls']");
}

TEST_CASE("module: a moved module keeps its parameters") {
  Tagger a = tagger(1);
  const Tensor weight = a.parameter("score.weight");
  const Tagger b = std::move(a);
  CHECK(b.parameter("score.weight").impl().storage == weight.impl().storage);
}

namespace {

/// Two members of one name, or a parameter's view that is a copy.
class Broken final : public nn::Module {
 public:
  explicit Broken(bool twice) : twice_(twice) {}
  void members(nn::Members& m) override {
    m("w", w_);
    if (twice_) {
      m("w", w_);
    } else {
      m("v", w_, [](const Tensor& w) { return w.clone(); });
    }
  }

 private:
  bool twice_;
  Tensor w_ = zeros({2});
};

}  // namespace

TEST_CASE("module: members of equal names and views that are copies are errors") {
  check_error([] { Broken(true).parameters(); }, "members: the name 'w' is given twice");
  check_error([] { Broken(false).parameters(); }, "the view of 'v' is a copy");
}

TEST_CASE("module: the gradient check covers all parameters, ties included") {
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
