#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <rill/core/core.h>
#include <rill/core/memory.h>
#include <rill/nn/seq2seq/seq2seq.h>
#include <rill/optim/optim.h>
#include <support/reference.h>
#include <support/same.h>

namespace {

using namespace rill;
using nn::Cell;
using nn::Hypothesis;

nn::Seq2SeqOptions small_options(Cell cell = Cell::gru) {
  return {.source_vocabulary = 12,
          .target_vocabulary = 10,
          .embedding_dim = 5,
          .hidden_size = 6,
          .bidirectional = true,
          .directions = nn::Directions::concat,
          .bridge = nn::Bridge::project,
          .cell = cell,
          .features_dropout = 0.1,
          .output_embedding = true};
}

Tensor random_tokens(const Shape& shape, std::uint64_t seed, std::uint64_t vocabulary) {
  Rng rng(seed);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < numel(shape); ++i)
    ids.push_back(static_cast<std::int64_t>(rng.below(vocabulary)));
  return tensor(ids, shape);
}

/// The tokens of each step when the most probable one is read next, whatever it is; [steps, B].
Tensor follow_greedily(const nn::Seq2Seq& model, const nn::Encoded& from, std::int64_t steps) {
  const NoGrad no_grad;
  Tensor token = full({from.hidden.size(0)}, 1, int64), hidden = from.hidden;
  std::vector<Tensor> all;
  for (std::int64_t t = 0; t < steps; ++t) {
    const nn::DecoderStep step = model.decoder().step(token, hidden, from.memory);
    token = argmax(step.log_probs, 1);
    hidden = step.hidden;
    all.push_back(token.unsqueeze(0));
  }
  std::vector<std::int64_t> ids;
  for (const Tensor& t : all) {
    for (const std::int64_t id : t.to_vector<std::int64_t>()) ids.push_back(id);
  }
  return tensor(ids, {steps, from.hidden.size(0)});
}

/// One of the reference's training runs.
void check_training(const std::string& file, bool ragged) {
  const test::Reference want(file, "run");
  Rng rng(1);
  nn::Seq2Seq model(
      {.source_vocabulary = 11, .target_vocabulary = 11, .embedding_dim = 8, .hidden_size = 8, .dropout = 0},
      rng);
  want.load_into(model);
  optim::Adam adam(model.parameters(), {.lr = 0.02});
  const auto batch = [&](const char* name, std::int64_t k) { return want(name).select(0, k % 5); };
  const auto lengths = [&](std::int64_t k) { return ragged ? batch("in.src_len", k) : Tensor(); };
  std::vector<double> losses, norms;
  for (std::int64_t k = 0; k < 20; ++k) {
    adam.zero_grad();
    const Tensor loss = model.loss(batch("in.src", k), lengths(k), batch("in.dec_in", k),
                                   batch("in.target", k), {.ignore_index = 0});
    loss.backward();
    if (k == 0) want.check_gradients(model);
    losses.push_back(loss.item());
    double squares = 0;
    for (const auto& [name, p] : model.named_parameters()) squares += sum(square(p.grad())).item();
    norms.push_back(std::sqrt(squares));
    if (ragged) optim::clip_grad_norm_(model.parameters(), 0.5);
    adam.step();
  }
  want.check_equal(tensor(losses, {20}), "out.loss");
  want.check_equal(tensor(norms, {20}), "out.grad_norm");
  for (std::int64_t k = 0; k < 5; ++k) {
    const Tensor wanted = batch("out.greedy", k);
    const Tensor got = follow_greedily(model, model.encode(batch("in.src", k), lengths(k)), wanted.size(0));
    CHECK(got.to_vector<std::int64_t>() == wanted.to_vector<std::int64_t>());
  }
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__)  // under which every block comes from the system
TEST_CASE("seq2seq: training steps after the first take nothing from the system") {
  for (const int threads : {1, 2}) {
    const test::Threads setter(threads);
    Rng rng(3);
    const nn::Seq2Seq model({.source_vocabulary = 2000,
                             .target_vocabulary = 3000,
                             .embedding_dim = 64,
                             .hidden_size = 64,
                             .bidirectional = true},
                            rng);
    optim::Adam adam(model.parameters());
    const Tensor source = random_tokens({12, 16}, 1, 2000), target = random_tokens({11, 16}, 2, 3000);
    const auto step = [&] {
      adam.zero_grad();
      model.loss(source, Tensor(), target, target).backward();
      adam.step();
    };
    for (int i = 0; i < 5; ++i) step();
    const std::int64_t before = memory::stats().system_allocations;
    for (int i = 0; i < 20; ++i) step();
    CHECK(memory::stats().system_allocations == before);
  }
}
#endif

TEST_CASE("seq2seq: training runs give the reference values") {
  check_training("train_seq2seq.safetensors", false);
  check_training("train_seq2seq_masked.safetensors", true);
}

namespace {

/// Sources of 2 to 7 tokens with their lengths.
struct Sources {
  Tensor ids = random_tokens({7, 5}, 11, 12);
  std::vector<std::int64_t> lengths{7, 2, 5, 3, 6};
  Tensor lengths_tensor() const { return tensor(lengths, {5}); }
  Tensor alone(std::int64_t b) const {
    return ids.narrow(1, b, 1).narrow(0, 0, lengths[static_cast<std::size_t>(b)]).clone();
  }
};

nn::Seq2Seq trained_a_little(nn::Seq2SeqOptions options) {
  Rng rng(3);
  nn::Seq2Seq model(options, rng);
  optim::Adam adam(model.parameters(), {.lr = 0.02});
  const Sources sources;
  const Tensor target = random_tokens({4, 5}, 5, 10);
  for (int step = 0; step < 15; ++step) {
    adam.zero_grad();
    model.loss(sources.ids, sources.lengths_tensor(), target, target).backward();
    adam.step();
  }
  model.eval();
  return model;
}

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

TEST_CASE("search: a beam of one is greedy decoding") {
  for (const Cell cell : {Cell::gru, Cell::rau}) {
    for (const bool attention : {true, false}) {
      nn::Seq2SeqOptions options = small_options(cell);
      options.attention = attention;
      const nn::Seq2Seq model = trained_a_little(options);
      const Sources sources;
      const auto found = model.search(sources.ids, sources.lengths_tensor(), {.banned = {}, .max_steps = 6});
      const Tensor greedy = follow_greedily(model, model.encode(sources.ids, sources.lengths_tensor()), 6);
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

TEST_CASE("search: a sentence gives alone what it gives in a batch") {
  for (const Cell cell : {Cell::gru, Cell::rau}) {
    for (const bool attention : {true, false}) {
      nn::Seq2SeqOptions options = small_options(cell);
      options.attention = attention;
      const nn::Seq2Seq model = trained_a_little(options);
      const Sources sources;
      for (const std::int64_t beam : {1, 4}) {
        const nn::SearchOptions search{.beam = beam, .weights = true};
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

TEST_CASE("search: log p is that of teacher forcing, scores descend and are normalised by length") {
  const nn::Seq2Seq model = trained_a_little(small_options());
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

TEST_CASE("search: a beam as wide as all sequences finds the most probable one") {
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

TEST_CASE("search: banned tokens are not written, and without an end a sequence stops where it must") {
  const nn::Seq2Seq model = trained_a_little(small_options());
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

TEST_CASE("search: equal scores stand in the order of their ids, without banned and impossible tokens") {
  for (const DType dtype : {float32, float64}) {
    nn::Seq2Seq model = trained_a_little(small_options());
    model.to(dtype);
    const NoGrad no_grad;
    model.parameter("decoder.out.weight").fill_(0);
    Tensor bias = model.parameter("decoder.out.bias");
    bias.fill_(0);
    // Banned twice and outside the vocabulary: neither matters.
    nn::SearchOptions options{.beam = 4, .banned = {1, 0, 4, 1, 77}, .max_steps = 1};
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

TEST_CASE("search: bad options and scores are errors, empty batches are not") {
  const nn::Seq2Seq model = trained_a_little(small_options());
  const Sources sources;
  CHECK_THROWS_WITH_AS(model.search(sources.ids, Tensor(), {.beam = 0}),
                       "search: a beam of 0; it must be at least 1", Error);
  CHECK_THROWS_WITH_AS(model.search(sources.ids, Tensor(), {.start = 10}), "search: token 10 is outside 0..9",
                       Error);
  const char* const no_score =
      "search: no token has a score; the model's parameters are not finite or all tokens are banned";
  CHECK_THROWS_WITH_AS(model.search(sources.ids, Tensor(), {.banned = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}),
                       no_score, Error);
  CHECK(model.search(zeros({4, 0}, int64)).empty());
  const auto blank = model.search(sources.ids, zeros({5}, int64), {.beam = 2});
  CHECK(blank.size() == 5);
  const NoGrad no_grad;
  model.parameter("decoder.out.bias").fill_(std::nan(""));
  CHECK_THROWS_WITH_AS(model.search(sources.ids, Tensor(), {}), no_score, Error);
}

TEST_CASE("seq2seq: padding of sources and targets changes neither loss nor gradients") {
  for (const Cell cell : {Cell::gru, Cell::rau}) {
    nn::Seq2SeqOptions options = small_options(cell);
    options.num_layers = 2;
    Rng rng(3);
    nn::Seq2Seq model(options, rng);
    model.to(float64);
    model.eval();
    const Sources sources;
    const std::vector<std::int64_t> target_lengths{3, 4, 1, 2, 4};
    Tensor target_in = random_tokens({4, 5}, 5, 10), target_out = random_tokens({4, 5}, 6, 9);
    for (std::int64_t& id : target_out.mutable_span<std::int64_t>()) ++id;  // 0 is padding
    for (std::int64_t b = 0; b < 5; ++b) {
      const std::int64_t n = target_lengths[static_cast<std::size_t>(b)];
      target_out.narrow(0, n, 4 - n).select(1, b).fill_(0);
    }
    const CrossEntropyOptions summed{.ignore_index = 0, .label_smoothing = 0.1, .reduction = Reduction::sum};
    model.loss(sources.ids, sources.lengths_tensor(), target_in, target_out, summed).backward();
    std::vector<std::vector<double>> together;
    for (const Tensor& p : model.parameters()) together.push_back(p.grad().to_vector());
    model.zero_grad();
    double loss = 0;
    for (std::int64_t b = 0; b < 5; ++b) {
      const std::int64_t n = target_lengths[static_cast<std::size_t>(b)];
      const auto part = [&](const Tensor& t) { return t.narrow(1, b, 1).narrow(0, 0, n); };
      const Tensor one = model.loss(sources.alone(b), Tensor(), part(target_in), part(target_out), summed);
      one.backward();
      loss += one.item();
    }
    CHECK(loss ==
          doctest::Approx(
              model.loss(sources.ids, sources.lengths_tensor(), target_in, target_out, summed).item()));
    const std::vector<Tensor> parameters = model.parameters();
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const std::vector<double> alone = parameters[k].grad().to_vector();
      double worst = 0;
      for (std::size_t i = 0; i < alone.size(); ++i)
        worst = std::max(worst, std::fabs(alone[i] - together[k][i]));
      CHECK(worst < 1e-11);
    }
  }
}

TEST_CASE("seq2seq: one and more threads train to the same bits") {
  std::array<std::vector<std::vector<double>>, 2> parameters;
  for (const int threads : {1, 3}) {
    const test::Threads with(threads);
    nn::Seq2SeqOptions options = small_options(Cell::rau);
    options.hidden_size = 64;
    options.embedding_dim = 48;
    const nn::Seq2Seq model = trained_a_little(options);
    for (const Tensor& p : model.parameters()) parameters[threads == 1 ? 0 : 1].push_back(p.to_vector());
  }
  CHECK(parameters[0] == parameters[1]);
}

TEST_CASE("seq2seq: a clone computes the same and shares nothing") {
  const nn::Seq2Seq model = trained_a_little(small_options(Cell::rau));
  nn::Seq2Seq copy = nn::clone(model);
  const Sources sources;
  const auto before = model.search(sources.ids, sources.lengths_tensor());
  const auto same = copy.search(sources.ids, sources.lengths_tensor());
  for (std::size_t b = 0; b < 5; ++b) CHECK(before[b][0].log_prob == same[b][0].log_prob);
  const NoGrad no_grad;
  copy.parameter("decoder.out.bias").fill_(3);
  CHECK(model.search(sources.ids, sources.lengths_tensor())[0][0].log_prob == before[0][0].log_prob);
}

TEST_CASE("seq2seq: the bridge and the memory are what the options say") {
  const auto names = [](const nn::Seq2Seq& m) {
    std::string all;
    for (const auto& [name, p] : m.named_parameters()) {
      if (!name.starts_with("encoder") && !name.starts_with("decoder.gru")) all += name + " ";
    }
    return all;
  };
  Rng rng(1);
  const nn::Seq2Seq projected(small_options(), rng);
  CHECK(names(projected) ==
        "embedding.weight bridge.weight bridge.bias decoder.embedding.weight decoder.attn.v "
        "decoder.attn.attn.weight "
        "decoder.attn.attn.bias decoder.out.weight decoder.out.bias ");
  CHECK(projected.parameter("bridge.weight").shape() == Shape{6, 12});
  CHECK(projected.encode(Sources().ids).memory.values.shape() == Shape{7, 5, 12});
  nn::Seq2SeqOptions options = small_options();
  options.directions = nn::Directions::sum;
  options.bridge = nn::Bridge::sum;
  options.attention = false;
  const nn::Seq2Seq plain(options, rng);
  CHECK(names(plain) == "embedding.weight decoder.embedding.weight decoder.out.weight decoder.out.bias ");
  const nn::Encoded from = plain.encode(Sources().ids);
  CHECK(from.memory.values.shape() == Shape{1, 5, 6});
  CHECK(from.memory.values.to_vector() == from.hidden.to_vector());
}

TEST_CASE("seq2seq: sources and targets that do not fit each other are an error that names both sides") {
  Rng rng(1);
  const nn::Seq2Seq model(small_options(), rng);
  const Tensor source = zeros({4, 3}, int64), target = zeros({5, 3}, int64);
  CHECK_THROWS_WITH_AS(
      model.loss(source, Tensor(), zeros({5, 2}, int64), zeros({5, 2}, int64)),
      "Seq2Seq: source [4, 3] and target [5, 2] do not fit; they are [steps, batch] of the same batch",
      Error);
  CHECK_THROWS_AS(model.loss(source, Tensor(), target, zeros({4, 3}, int64)), Error);
  CHECK_THROWS_AS(model.loss(full({4, 3}, 12, int64), Tensor(), target, target), Error);
  CHECK_THROWS_AS(model.loss(source, Tensor(), full({5, 3}, 10, int64), target), Error);
  CHECK_THROWS_AS(model.loss(source, full({3}, 5, int64), target, target), Error);
  CHECK_THROWS_AS(model.encode(zeros({4, 3})), Error);
  CHECK_THROWS_AS(
      nn::Seq2Seq({.source_vocabulary = 3, .target_vocabulary = 3, .embedding_dim = 0, .hidden_size = 2},
                  rng),
      Error);
}
