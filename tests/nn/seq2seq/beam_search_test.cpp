#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <rill/core/core.h>
#include <rill/nn/seq2seq/bahdanau.h>
#include <rill/nn/seq2seq/beam_search.h>

namespace {

using namespace rill;
using nn::BeamStep;
using nn::Hypothesis;
using Found = std::vector<std::vector<Hypothesis>>;

constexpr std::int64_t vocabulary = 5, hidden = 4, sources = 3;
const nn::BeamSearchOptions options{.beam = 3, .start = 0, .end = 1, .banned = {0}, .max_steps = 4};

/// A decoder of plain ops with the two states of an LSTM: c' = c / 2 + tanh(e + h W), h' = tanh(c').
struct TwoStates {
  Tensor embeddings, recurrent, output;
  explicit TwoStates(std::uint64_t seed) {
    Rng rng(seed);
    embeddings = randn({vocabulary, hidden}, rng);
    recurrent = randn({hidden, hidden}, rng);
    output = randn({hidden, vocabulary}, rng);
  }
  /// Log-probabilities of the next token, h' and c'.
  std::tuple<Tensor, Tensor, Tensor> operator()(const Tensor& tokens, const Tensor& h,
                                                const Tensor& c) const {
    const Tensor memory = c * 0.5 + tanh(embedding(embeddings, tokens) + matmul(h, recurrent));
    const Tensor next = tanh(memory);
    return {log_softmax(matmul(next, output), -1), next, memory};
  }
};

/// h and c of all sources.
std::pair<Tensor, Tensor> initial_states(std::uint64_t seed) {
  Rng rng(seed, 1);
  return {randn({sources, hidden}, rng), randn({sources, hidden}, rng)};
}

Found search_pairs(const TwoStates& model, const std::pair<Tensor, Tensor>& first,
                   const nn::BeamSearchOptions& how = options) {
  const auto step = [&](const Tensor& tokens, const std::pair<Tensor, Tensor>& state) {
    const auto [log_probs, h, c] = model(tokens, state.first, state.second);
    return BeamStep{log_probs, std::pair(h, c)};
  };
  return nn::beam_search(step, first, how);
}

bool same(const Found& a, const Found& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Hypothesis& p, const Hypothesis& q) {
      return p.tokens == q.tokens && p.finished == q.finished && p.log_prob == q.log_prob &&
             p.score == q.score;
    });
  });
}

}  // namespace

TEST_CASE("beam_search: a custom step function with a beam of 3 finds the result of exhaustive search") {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    Rng rng(seed);
    const Tensor embeddings = randn({5, 4}, rng), recurrent = randn({4, 4}, rng), output = randn({4, 5}, rng);
    const Tensor initial_state = randn({3, 4}, rng);
    std::vector<Hypothesis> bests;

    // The example of beam_search.h.
    const auto step = [&](const Tensor& tokens, const Tensor& h) {  // h [N, H]
      const Tensor next = tanh(embedding(embeddings, tokens) + matmul(h, recurrent));
      return nn::BeamStep{log_softmax(matmul(next, output), -1), next};
    };
    const nn::BeamSearchOptions options{.beam = 3, .start = 0, .end = 1, .banned = {0}, .max_steps = 4};
    for (const auto& hypotheses : nn::beam_search(step, initial_state, options)) {  // one source each
      const nn::Hypothesis& best = hypotheses.front();
      bests.push_back(best);
    }

    // All sequences of tokens 1 to 4, ending with the end token or at length 4.
    for (std::int64_t b = 0; b < 3; ++b) {
      double best_score = -std::numeric_limits<double>::infinity();
      std::vector<std::int64_t> best;
      const auto visit = [&](const auto& self, const std::vector<std::int64_t>& tokens, const Tensor& h,
                             double log_prob) -> void {
        const std::int64_t last = tokens.empty() ? 0 : tokens.back();
        const double score = tokens.empty() ? log_prob : log_prob / static_cast<double>(tokens.size());
        if (last == 1 || tokens.size() == 4) {
          if (score > best_score) best = tokens;
          best_score = std::max(best_score, score);
          return;
        }
        const auto [log_probs, next, unused] = step(tensor({last}), h);
        for (std::int64_t token = 1; token < 5; ++token) {
          std::vector<std::int64_t> longer = tokens;
          longer.push_back(token);
          self(self, longer, next, log_prob + log_probs.select(1, token).item());
        }
      };
      visit(visit, {}, initial_state.narrow(0, b, 1), 0);
      const Hypothesis& found = bests[static_cast<std::size_t>(b)];
      if (found.finished) best.pop_back();
      CHECK(found.tokens == best);
      CHECK(found.score == doctest::Approx(best_score).epsilon(1e-5));
    }
  }
}

namespace {

/// A custom state that counts how often its rows are selected.
struct CountedState {
  Tensor h, c;
  int* selections;
  std::int64_t batch() const { return h.size(0); }
  CountedState rows(const Tensor& index) const {
    ++*selections;
    return {nn::select_rows(h, index), nn::select_rows(c, index), selections};
  }
};

}  // namespace

TEST_CASE("beam_search: a state is a tensor, a pair, tuple, array or vector of states, or a type with rows") {
  const TwoStates model(1);
  const auto [h, c] = initial_states(1);
  const Found pairs = search_pairs(model, {h, c});
  REQUIRE(pairs.size() == 3);
  REQUIRE(pairs[0].size() == 3);

  const auto layers = [&](const Tensor& tokens, const Tensor& state) {  // [2, N, H]
    const auto [log_probs, next, memory] = model(tokens, state.select(0, 0), state.select(0, 1));
    return BeamStep{log_probs, stack({next, memory})};
  };
  CHECK(same(pairs, nn::beam_search(layers, stack({h, c}), options)));

  const auto indexed = [&](const Tensor& tokens, auto state) {
    const auto [log_probs, next, memory] = model(tokens, state[0], state[1]);
    state[0] = next;
    state[1] = memory;
    return BeamStep{log_probs, state};
  };
  CHECK(same(pairs, nn::beam_search(indexed, std::vector{h, c}, options)));
  CHECK(same(pairs, nn::beam_search(indexed, std::array{h, c}, options)));

  // Nested, with an undefined tensor, which suits any number of rows.
  using Nested = std::tuple<std::vector<std::pair<Tensor, Tensor>>, Tensor>;
  const auto nested = [&](const Tensor& tokens, const Nested& state) {
    const auto& inner = std::get<0>(state).front();
    const auto [log_probs, next, memory] = model(tokens, inner.first, inner.second);
    return BeamStep{log_probs, Nested{{{next, memory}}, Tensor()}};
  };
  CHECK(same(pairs, nn::beam_search(nested, Nested{{{h, c}}, Tensor()}, options)));

  int selections = 0;
  const auto counted = [&](const Tensor& tokens, const CountedState& state) {
    const auto [log_probs, next, memory] = model(tokens, state.h, state.c);
    return BeamStep{log_probs, CountedState{next, memory, state.selections}};
  };
  CHECK(same(pairs, nn::beam_search(counted, CountedState{h, c, &selections}, options)));
  CHECK(selections > 0);
}

TEST_CASE("beam_search: a source has the same hypotheses alone and in a batch") {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const TwoStates model(seed);
    const auto [h, c] = initial_states(seed);
    const Found together = search_pairs(model, {h, c});
    for (std::int64_t b = 0; b < sources; ++b) {
      const Found alone = search_pairs(model, {h.narrow(0, b, 1), c.narrow(0, b, 1)});
      const auto& wanted = together[static_cast<std::size_t>(b)];
      REQUIRE(alone[0].size() == wanted.size());
      for (std::size_t k = 0; k < wanted.size(); ++k) {
        CHECK(alone[0][k].tokens == wanted[k].tokens);
        CHECK(alone[0][k].log_prob == doctest::Approx(wanted[k].log_prob).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("beam_search: finished sources leave the batch, and rows in place are not selected") {
  // The state is the number of tokens left for each source.
  std::vector<std::int64_t> batches;
  int selections = 0;
  const auto step = [&](const Tensor& tokens, const CountedState& state) {
    batches.push_back(tokens.size(0));
    const Tensor ends = le(state.h, zeros_like(state.h)).to(float32);
    const Tensor scores = cat({ends * 0.0 - 50.0, ends * 100.0 - 50.0, zeros_like(ends)}, 1);
    return BeamStep{log_softmax(scores, 1), CountedState{state.h - 1.0, state.c, state.selections}};
  };
  const Tensor left = tensor({0.0f, 3.0f, 1.0f, 3.0f}).reshape({4, 1});
  const nn::BeamSearchOptions greedy{.start = 0, .end = 1, .banned = {0}, .max_steps = 9};
  const Found found = nn::beam_search(step, CountedState{left, left, &selections}, greedy);
  CHECK(batches == std::vector<std::int64_t>{4, 3, 2, 2});
  CHECK(selections == 2);
  for (std::size_t b = 0; b < 4; ++b) {
    CHECK(found[b].front().finished);
    CHECK(found[b].front().tokens.size() == std::array<std::size_t, 4>{0, 3, 1, 3}[b]);
  }
}

TEST_CASE("beam_search: AttendingState gives the same results as a memory selected at every step") {
  Rng rng(5);
  nn::BahdanauDecoder decoder({.vocab = 6, .m = 4, .n = 5, .l = 4, .align = 3}, rng);
  {
    const NoGrad no_grad;
    for (const auto& [name, p] : decoder.named_parameters()) Tensor(p).copy_(randn(p.shape(), rng));
  }
  const Tensor h = randn({7, 3, 10}, rng);
  const Tensor lengths = tensor({7, 2, 4});
  using State = nn::AttendingState<Tensor>;
  const auto step = [&](const Tensor& tokens, const auto& s, const nn::Memory& memory) {
    return decoder(tokens.unsqueeze(0), memory.values, memory.lengths, s);
  };
  const auto attending = [&](const Tensor& tokens, const State& state) {
    const nn::BahdanauDecoded out = step(tokens, state.state(), state.memory());
    return BeamStep{out.log_probs.select(0, 0), state.with(out.s), out.weights.select(0, 0).t()};
  };
  using Pair = std::pair<Tensor, nn::Memory>;
  const auto paired = [&](const Tensor& tokens, const Pair& state) {
    const nn::BahdanauDecoded out = step(tokens, state.first, state.second);
    return BeamStep{out.log_probs.select(0, 0), Pair{out.s, state.second}, out.weights.select(0, 0).t()};
  };
  const nn::Memory memory{.values = h, .keys = Tensor(), .lengths = lengths};
  const Tensor s = decoder.initial_state(h);
  for (const std::int64_t beam : {1, 4}) {
    const nn::BeamSearchOptions how{.beam = beam, .weights = true};
    const Found found = nn::beam_search(attending, State(s, memory), how, lengths);
    const Found wanted = nn::beam_search(paired, Pair{s, memory}, how, lengths);
    CHECK(same(found, wanted));
    for (std::size_t b = 0; b < 3; ++b) {
      for (std::size_t k = 0; k < found[b].size(); ++k) {
        const Hypothesis& one = found[b][k];
        CHECK(one.weights.to_vector() == wanted[b][k].weights.to_vector());
        CHECK(one.weights.shape() == Shape{std::ssize(one.tokens) + (one.finished ? 1 : 0), 7});
        CHECK(std::ssize(one.tokens) <= 2 * lengths.to_vector<std::int64_t>()[b] + 5);
      }
    }
  }
}

TEST_CASE("beam_search: invalid arguments are errors with a remedy") {
  const TwoStates model(1);
  const auto [h, c] = initial_states(1);
  const auto step_of = [&](const Tensor& log_probs, const Tensor& weights = Tensor()) {
    return [=](const Tensor&, const Tensor& state) { return BeamStep{log_probs, state, weights}; };
  };
  const auto check_rejects = [](const auto& call, const char* why) {
    CHECK_THROWS_WITH_AS(call(), doctest::Contains(why), Error);
  };
  const auto state = h;
  check_rejects(
      [&] {
        nn::beam_search(step_of(zeros({3, 5})), state, {.beam = 1});
      },
      "beam_search: max_steps is 0 and there are no source lengths; set max_steps");
  check_rejects([&] { nn::beam_search(step_of(zeros({3, 5})), state, {.max_steps = -1}); }, "max_steps -1");
  check_rejects(
      [&] {
        nn::beam_search(step_of(zeros({3, 5})), state, {}, zeros({2}, int64));
      },
      "beam_search: lengths of shape [2] for 3 sources; pass [3]");
  check_rejects(
      [&] {
        nn::beam_search(step_of(zeros({2, 5})), state, options);
      },
      "beam_search: the step returned log-probabilities [2, 5]; they must be [3, vocabulary]");
  check_rejects(
      [&] {
        nn::beam_search(step_of(zeros({3, 2})), state, {.end = 2, .max_steps = 3});
      },
      "beam_search: token 2 is outside 0..1");
  check_rejects(
      [&] {
        nn::beam_search(step_of(zeros({3, 5})), state, {.max_steps = 3, .weights = true});
      },
      "they must be [3, positions]");
  check_rejects(
      [&] {
        nn::beam_search(step_of(zeros({3, 5})), Tensor(), options);
      },
      "beam_search: the state has no defined tensor");
  check_rejects(
      [&] {
        nn::beam_search(step_of(zeros({3, 5})), scalar(1.0), options);
      },
      "the state is a scalar");
  check_rejects(
      [&] {
        search_pairs(model, {h, c.narrow(0, 0, 2)});
      },
      "beam_search: tensors of the state have 3 and 2 rows; dimension -2 is the batch");
  check_rejects([&] { search_pairs(model, {h, c}, {.beam = 0, .max_steps = 1}); }, "a beam of 0");
  check_rejects(
      [&] {
        search_pairs(model, {h, c}, {.length_penalty = NAN, .max_steps = 1});
      },
      "length penalty");
  CHECK(search_pairs(model, {h.narrow(0, 0, 0), c.narrow(0, 0, 0)}).empty());
}
