#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <nn/seq2seq/small_seq2seq.h>

namespace {

using namespace rill;
using namespace test;
using nn::Hypothesis;

bool same_tokens(const Hypothesis& a, const Hypothesis& b) {
  return a.tokens == b.tokens && a.finished == b.finished;
}

/// log p of a hypothesis by teacher forcing.
double forced_log_prob(const nn::Seq2Seq& model, const Tensor& source, const Hypothesis& h) {
  const NoGrad no_grad;
  std::vector<std::int64_t> in{1}, out(h.tokens);
  in.insert(in.end(), h.tokens.begin(), h.tokens.end());
  if (h.finished) {
    out.push_back(2);
  } else {
    in.pop_back();
  }
  const std::int64_t steps = std::ssize(out);
  const Tensor loss = model.loss(source, Tensor(), tensor(in, {steps, 1}), tensor(out, {steps, 1}),
                                 {.reduction = Reduction::sum});
  return -loss.item();
}

}  // namespace

TEST_CASE("beam_search: a beam of one is greedy decoding") {
  for (const Cell cell : nn::cells) {
    for (const bool attention : {true, false}) {
      nn::Seq2SeqOptions options = small_options(cell);
      options.attention = attention;
      const nn::Seq2Seq model = briefly_trained(options);
      const Sources sources;
      const auto found = model.search(sources.ids, sources.lengths_tensor(), {.banned = {}, .max_steps = 6});
      const Tensor greedy = decode_greedily(model, model.encode(sources.ids, sources.lengths_tensor()), 6);
      REQUIRE(found.size() == 5);
      for (std::size_t b = 0; b < 5; ++b) {
        REQUIRE(found[b].size() == 1);
        std::vector<std::int64_t> wanted =
            greedy.select(1, static_cast<std::int64_t>(b)).to_vector<std::int64_t>();
        const auto end = std::find(wanted.begin(), wanted.end(), 2);
        CHECK(found[b][0].finished == (end != wanted.end()));
        wanted.erase(end, wanted.end());
        CHECK(found[b][0].tokens == wanted);
      }
    }
  }
}

TEST_CASE("beam_search: a sentence decodes the same alone and in a batch") {
  for (const Cell cell : nn::cells) {
    for (const bool attention : {true, false}) {
      nn::Seq2SeqOptions options = small_options(cell);
      options.attention = attention;
      const nn::Seq2Seq model = briefly_trained(options);
      const Sources sources;
      for (const std::int64_t beam : {1, 4}) {
        const nn::BeamSearchOptions search{.beam = beam, .weights = true};
        const auto among = model.search(sources.ids, sources.lengths_tensor(), search);
        for (std::int64_t b = 0; b < 5; ++b) {
          const auto alone = model.search(sources.alone(b), Tensor(), search).front();
          const auto& together = among[static_cast<std::size_t>(b)];
          REQUIRE(alone.size() == together.size());
          for (std::size_t k = 0; k < alone.size(); ++k) {
            CHECK(same_tokens(alone[k], together[k]));
            CHECK(alone[k].log_prob == doctest::Approx(together[k].log_prob).epsilon(1e-5));
            if (!attention) continue;
            const Tensor seen =
                together[k].weights.narrow(1, 0, sources.lengths[static_cast<std::size_t>(b)]);
            const std::vector<double> x = alone[k].weights.to_vector(), y = seen.to_vector();
            REQUIRE(x.size() == y.size());
            for (std::size_t i = 0; i < x.size(); ++i) CHECK(x[i] == doctest::Approx(y[i]).epsilon(1e-4));
          }
        }
      }
    }
  }
}

TEST_CASE("beam_search: log_prob matches teacher forcing, scores descend and are normalised by length") {
  const nn::Seq2Seq model = briefly_trained(small_options());
  const Sources sources;
  for (const double alpha : {0.0, 0.6, 1.0}) {
    const auto found = model.search(sources.ids, sources.lengths_tensor(),
                                    {.beam = 3, .length_penalty = alpha, .max_steps = 8});
    for (std::int64_t b = 0; b < 5; ++b) {
      double before = std::numeric_limits<double>::infinity();
      for (const Hypothesis& h : found[static_cast<std::size_t>(b)]) {
        CHECK(h.log_prob == doctest::Approx(forced_log_prob(model, sources.alone(b), h)).epsilon(1e-4));
        const double length = static_cast<double>(h.tokens.size() + (h.finished ? 1 : 0));
        CHECK(h.score == doctest::Approx(h.log_prob / std::pow(length, alpha)));
        CHECK(h.score <= before);
        before = h.score;
      }
    }
  }
}

TEST_CASE("beam_search: a beam of all sequences finds the most probable one") {
  nn::Seq2SeqOptions options = small_options();
  options.target_vocabulary = 5;
  Rng rng(8);
  nn::Seq2Seq model(options, rng);
  model.eval();
  const Tensor source = random_tokens({4, 1}, 9, 12);
  // Without length normalisation, tokens 3, 4 and the end, at most 3 steps.
  const auto found =
      model.search(source, Tensor(), {.beam = 30, .length_penalty = 0, .banned = {0, 1}, .max_steps = 3})
          .front();
  double best = -std::numeric_limits<double>::infinity();
  std::vector<std::int64_t> winner;
  for (const std::vector<std::int64_t>& tokens :
       std::vector<std::vector<std::int64_t>>{{}, {3}, {4}, {3, 3}, {3, 4}, {4, 3}, {4, 4}}) {
    const double p = forced_log_prob(model, source, {.tokens = tokens, .finished = true});
    if (p > best) {
      best = p;
      winner = tokens;
    }
  }
  for (const Hypothesis& h : found) {
    if (!h.finished) continue;
    CHECK(h.tokens == winner);
    CHECK(h.log_prob == doctest::Approx(best).epsilon(1e-5));
    break;
  }
  CHECK(found.size() == 7 + 8);
}

TEST_CASE("beam_search: banned tokens never occur, and without an end token a sequence stops at the limit") {
  const nn::Seq2Seq model = briefly_trained(small_options());
  const Sources sources;
  const auto found = model.search(sources.ids, sources.lengths_tensor(), {.beam = 2, .banned = {0, 1, 2, 3}});
  for (std::size_t b = 0; b < 5; ++b) {
    for (const Hypothesis& h : found[b]) {
      CHECK_FALSE(h.finished);
      CHECK(std::ssize(h.tokens) == 2 * sources.lengths[b] + 5);
      for (const std::int64_t token : h.tokens) CHECK(token > 3);
    }
  }
}

TEST_CASE("beam_search: ties are ordered by token id, without banned and impossible tokens") {
  for (const DType dtype : {float32, float64}) {
    nn::Seq2Seq model = briefly_trained(small_options());
    model.to(dtype);
    const NoGrad no_grad;
    model.parameter("decoder.out.weight").fill_(0);
    Tensor bias = model.parameter("decoder.out.bias");
    bias.fill_(0);
    // Banned twice and outside the vocabulary: neither matters.
    nn::BeamSearchOptions options{.beam = 4, .banned = {1, 0, 4, 1, 77}, .max_steps = 1};
    using Tokens = std::vector<std::vector<std::int64_t>>;
    const auto tokens = [&] {
      const auto found = model.search(random_tokens({3, 2}, 4, 12), Tensor(), options);
      Tokens all;
      for (const Hypothesis& h : found[1]) all.push_back(h.tokens);
      return all;
    };
    CHECK(tokens() == Tokens{{}, {3}, {5}, {6}});
    bias.narrow(0, 5, 1).fill_(-std::numeric_limits<double>::infinity());
    CHECK(tokens() == Tokens{{}, {3}, {6}, {7}});
    bias.narrow(0, 4, 1).fill_(3);
    options.beam = std::numeric_limits<std::int64_t>::max();
    CHECK(tokens() == Tokens{{}, {3}, {6}, {7}, {8}, {9}});
  }
}

TEST_CASE("beam_search: invalid options and scores are errors, empty batches are not") {
  const nn::Seq2Seq model = briefly_trained(small_options());
  const Sources sources;
  CHECK_THROWS_WITH_AS(model.search(sources.ids, Tensor(), {.beam = 0}),
                       "beam_search: a beam of 0; it must be at least 1", Error);
  CHECK_THROWS_WITH_AS(model.search(sources.ids, Tensor(), {.start = 10}),
                       "beam_search: token 10 is outside 0..9", Error);
  const char* const no_score =
      "beam_search: no token has a score; the model's parameters are not finite or all tokens are banned";
  CHECK_THROWS_WITH_AS(model.search(sources.ids, Tensor(), {.banned = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}),
                       no_score, Error);
  CHECK(model.search(zeros({4, 0}, int64)).empty());
  const auto blank = model.search(sources.ids, zeros({5}, int64), {.beam = 2});
  CHECK(blank.size() == 5);
  const NoGrad no_grad;
  model.parameter("decoder.out.bias").fill_(std::nan(""));
  CHECK_THROWS_WITH_AS(model.search(sources.ids, Tensor(), {}), no_score, Error);
}
