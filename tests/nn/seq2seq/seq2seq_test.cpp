#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <nn/seq2seq/small_seq2seq.h>
#include <rill/core/memory.h>
#include <rill/optim/optim.h>
#include <support/same.h>

using namespace rill;
using namespace test;

#if !defined(__SANITIZE_ADDRESS__)  // under which every block comes from the system
TEST_CASE("seq2seq: training steps after the first allocate nothing from the system") {
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
    constexpr int steps = 20;
    for (int i = 0; i < steps; ++i) step();
    const std::int64_t taken = memory::stats().system_allocations - before;
    if (threads == 1) CHECK(taken == 0);
    CHECK(taken < steps);  // a second thread allocates a workspace for its first chunk of a kernel
  }
}
#endif

TEST_CASE("seq2seq: padding of sources and targets changes neither loss nor gradients") {
  for (const Cell cell : nn::cells) {
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
      const auto unpadded = [&](const Tensor& t) { return t.narrow(1, b, 1).narrow(0, 0, n); };
      const Tensor one =
          model.loss(sources.alone(b), Tensor(), unpadded(target_in), unpadded(target_out), summed);
      one.backward();
      loss += one.item();
    }
    CHECK(loss ==
          doctest::Approx(
              model.loss(sources.ids, sources.lengths_tensor(), target_in, target_out, summed).item()));
    const std::vector<nn::Parameter> parameters = model.parameters();
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const std::vector<double> alone = parameters[k].grad().to_vector();
      double worst = 0;
      for (std::size_t i = 0; i < alone.size(); ++i)
        worst = std::max(worst, std::fabs(alone[i] - together[k][i]));
      CHECK(worst < 1e-11);
    }
  }
}

TEST_CASE("seq2seq: training gives the same bits on any number of threads") {
  std::array<std::vector<std::vector<double>>, 2> parameters;
  for (const int threads : {1, 3}) {
    const test::Threads with(threads);
    nn::Seq2SeqOptions options = small_options(Cell::rau);
    options.hidden_size = 64;
    options.embedding_dim = 48;
    const nn::Seq2Seq model = briefly_trained(options);
    for (const Tensor& p : model.parameters()) parameters[threads == 1 ? 0 : 1].push_back(p.to_vector());
  }
  CHECK(parameters[0] == parameters[1]);
}

TEST_CASE("seq2seq: a clone gives the same results and shares nothing") {
  const nn::Seq2Seq model = briefly_trained(small_options(Cell::rau));
  nn::Seq2Seq copy = nn::clone(model);
  const Sources sources;
  const auto before = model.search(sources.ids, sources.lengths_tensor());
  const auto same = copy.search(sources.ids, sources.lengths_tensor());
  for (std::size_t b = 0; b < 5; ++b) CHECK(before[b][0].log_prob == same[b][0].log_prob);
  const NoGrad no_grad;
  copy.parameter("decoder.out.bias").fill_(3);
  CHECK(model.search(sources.ids, sources.lengths_tensor())[0][0].log_prob == before[0][0].log_prob);
}

TEST_CASE("seq2seq: bridge and memory follow the options") {
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
  CHECK(from.memory.values.to_vector() == from.state.h.to_vector());
}

TEST_CASE("seq2seq: mismatched sources and targets are errors that name both sides") {
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
