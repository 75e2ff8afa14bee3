#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <rill/core/core.h>
#include <rill/nn/init.h>
#include <rill/nn/seq2seq/bahdanau.h>
#include <support/expect.h>

namespace {

using namespace rill;
using test::check_error;
using test::largest_difference;
using Matrix = std::vector<std::vector<double>>;
using Vector = std::vector<double>;

Tensor random(const Shape& shape, std::uint64_t seed) {
  Rng rng(seed);
  return randn(shape, rng, float64);
}

/// Replaces the small initial parameters by larger ones.
template <class M>
void randomise(M& module) {
  Rng rng(77);
  module.to(float64);
  for (const Tensor& p : module.parameters()) nn::init::normal_(p, 0, 0.6, rng);
}

// --- the paper's equations on scalars

Matrix matrix(const nn::Module& m, const std::string& name) {
  const Tensor w = m.parameter(name);
  Matrix rows;
  for (std::int64_t i = 0; i < w.size(0); ++i) rows.push_back(w.select(0, i).to_vector());
  return rows;
}

Vector times(const Matrix& w, const Vector& x) {
  Vector y;
  for (const Vector& row : w) {
    REQUIRE(row.size() == x.size());
    double sum = 0;
    for (std::size_t j = 0; j < x.size(); ++j) sum += row[j] * x[j];
    y.push_back(sum);
  }
  return y;
}

Vector plus(Vector a, const Vector& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

template <class F>
Vector each(Vector a, F f) {
  for (double& v : a) v = f(v);
  return a;
}

double logistic(double v) { return 1 / (1 + std::exp(-v)); }

Vector softmax_of(const Vector& e) {
  double total = 0;
  for (double v : e) total += std::exp(v);
  return each(e, [&](double v) { return std::exp(v) / total; });
}

/// Weights of state s over annotations h_1 … h_length, and the context.
std::pair<Vector, Vector> align(const nn::Module& m, const std::string& prefix, const Vector& s,
                                const Matrix& h) {
  const Matrix w = matrix(m, prefix + "W_a"), u = matrix(m, prefix + "U_a");
  const Vector v = m.parameter(prefix + "v_a").to_vector();
  Vector e;
  for (const Vector& h_j : h) {
    const Vector energy = each(plus(times(w, s), times(u, h_j)), [](double x) { return std::tanh(x); });
    double score = 0;
    for (std::size_t i = 0; i < v.size(); ++i) score += v[i] * energy[i];
    e.push_back(score);
  }
  const Vector weights = softmax_of(e);
  Vector context(h[0].size(), 0.0);
  for (std::size_t j = 0; j < h.size(); ++j) {
    for (std::size_t i = 0; i < context.size(); ++i) context[i] += weights[j] * h[j][i];
  }
  return {weights, context};
}

/// Log-probabilities of each step of one sentence.
Matrix decode(const nn::BahdanauDecoder& m, const std::vector<std::int64_t>& words, const Matrix& h) {
  const auto n = static_cast<std::size_t>(m.options().n), l = static_cast<std::size_t>(m.options().l);
  const auto affine = [&](const char* suffix, const Vector& y, const Vector& s, const Vector& c) {
    return plus(
        plus(times(matrix(m, std::string("W") + suffix), y), times(matrix(m, std::string("U") + suffix), s)),
        times(matrix(m, std::string("C") + suffix), c));
  };
  Vector s = each(times(matrix(m, "W_s"), Vector(h[0].begin() + static_cast<std::ptrdiff_t>(n), h[0].end())),
                  [](double x) { return std::tanh(x); });
  Matrix log_probs;
  for (std::int64_t word : words) {
    const Vector y = matrix(m, "E")[static_cast<std::size_t>(word)];
    const Vector c = align(m, "attention.", s, h).second;
    const Vector z = each(affine("_z", y, s, c), logistic), r = each(affine("_r", y, s, c), logistic);
    const Vector t =
        plus(plus(times(matrix(m, "U_o"), s), times(matrix(m, "V_o"), y)), times(matrix(m, "C_o"), c));
    Vector maxout;
    for (std::size_t k = 0; k < l; ++k) maxout.push_back(std::max(t[2 * k], t[2 * k + 1]));
    log_probs.push_back(
        each(softmax_of(times(matrix(m, "W_o"), maxout)), [](double p) { return std::log(p); }));
    Vector reset = s;
    for (std::size_t i = 0; i < n; ++i) reset[i] *= r[i];
    const Vector candidate = each(affine("", y, reset, c), [](double x) { return std::tanh(x); });
    for (std::size_t i = 0; i < n; ++i) s[i] = (1 - z[i]) * s[i] + z[i] * candidate[i];
  }
  return log_probs;
}

/// The annotations of one row, up to its length.
Matrix annotations(const Tensor& h, std::int64_t row, std::int64_t length) {
  Matrix rows;
  for (std::int64_t j = 0; j < length; ++j) rows.push_back(h.select(0, j).select(0, row).to_vector());
  return rows;
}

constexpr nn::BahdanauDecoderOptions small{.vocab = 7, .m = 3, .n = 4, .l = 2, .align = 5};

nn::BahdanauDecoder small_decoder() {
  Rng rng(1);
  nn::BahdanauDecoder decoder(small, rng);
  randomise(decoder);
  return decoder;
}

}  // namespace

TEST_CASE("bahdanau: alignment follows the paper's equations, within each row's length") {
  Rng rng(1);
  nn::BahdanauAttention attention({.state = 3, .annotation = 6, .align = 4}, rng);
  randomise(attention);
  const Tensor s = random({3, 3}, 2), h = random({5, 3, 6}, 3);
  const std::vector<std::int64_t> lengths{2, 5, 1};
  const auto [weights, context] = attention(s, h, tensor(lengths, {3}));
  REQUIRE(weights.shape() == Shape{5, 3});
  REQUIRE(context.shape() == Shape{3, 6});
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::int64_t length = lengths[static_cast<std::size_t>(b)];
    const auto [alpha, c] = align(attention, "", s.select(0, b).to_vector(), annotations(h, b, length));
    const Vector got = weights.select(1, b).to_vector(), got_context = context.select(0, b).to_vector();
    for (std::int64_t j = 0; j < 5; ++j) {
      const auto i = static_cast<std::size_t>(j);
      if (j < length) {
        CHECK(got[i] == doctest::Approx(alpha[i]).epsilon(1e-12));
      } else {
        CHECK(got[i] == 0);
      }
    }
    for (std::size_t i = 0; i < c.size(); ++i) CHECK(got_context[i] == doctest::Approx(c[i]).epsilon(1e-12));
  }
}

TEST_CASE("bahdanau: a row without positions has weights and context of zero") {
  Rng rng(1);
  nn::BahdanauAttention attention({.state = 3, .annotation = 6, .align = 4}, rng);
  randomise(attention);
  const auto out = attention(random({2, 3}, 2), random({5, 2, 6}, 3), tensor<std::int64_t>({0, 5}));
  CHECK(sum(abs(out.weights.select(1, 0))).item() == 0);
  CHECK(sum(abs(out.context.select(0, 0))).item() == 0);
  CHECK(sum(out.weights.select(1, 1)).item() == doctest::Approx(1));
}

TEST_CASE("bahdanau: the decoder follows the paper's equations for every sentence of a batch") {
  const nn::BahdanauDecoder decoder = small_decoder();
  const Tensor h = random({5, 3, 8}, 3),
               words = tensor<std::int64_t>({1, 2, 6, 0, 3, 3, 5, 1, 2, 4, 4, 6}, {4, 3});
  const std::vector<std::int64_t> lengths{4, 5, 1};
  const auto out = decoder(words, h, tensor(lengths, {3}));
  CHECK(out.log_probs.shape() == Shape{4, 3, 7});
  CHECK(out.weights.shape() == Shape{4, 5, 3});
  CHECK(out.s.shape() == Shape{3, 4});
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::int64_t length = lengths[static_cast<std::size_t>(b)];
    const Matrix want =
        decode(decoder, words.select(1, b).to_vector<std::int64_t>(), annotations(h, b, length));
    for (std::int64_t t = 0; t < 4; ++t) {
      const Vector got = out.log_probs.select(0, t).select(0, b).to_vector();
      for (std::size_t i = 0; i < got.size(); ++i) {
        CHECK(got[i] == doctest::Approx(want[static_cast<std::size_t>(t)][i]).epsilon(1e-11));
      }
    }
  }
}

TEST_CASE("bahdanau: padding has no effect and its gradient is zero") {
  const nn::BahdanauDecoder decoder = small_decoder();
  const Tensor h = random({5, 2, 8}, 3), words = tensor<std::int64_t>({1, 2, 6, 0}, {2, 2}),
               lengths = tensor<std::int64_t>({3, 5});
  Tensor junk = h.clone();
  junk.narrow(0, 3, 2).select(1, 0).fill_(1e6);
  junk.set_requires_grad();
  const auto out = decoder(words, junk, lengths);
  CHECK(largest_difference(out.log_probs, decoder(words, h, lengths).log_probs) == 0);
  sum(out.log_probs).backward();
  CHECK(sum(abs(junk.grad().narrow(0, 3, 2).select(1, 0))).item() == 0);
  CHECK(sum(abs(junk.grad().select(0, 0))).item() > 0);
}

TEST_CASE("bahdanau: decoding continues from a state") {
  const nn::BahdanauDecoder decoder = small_decoder();
  const Tensor h = random({5, 2, 8}, 3), words = tensor<std::int64_t>({1, 2, 6, 0, 3, 4}, {3, 2});
  const auto whole = decoder(words, h);
  const auto first = decoder(words.narrow(0, 0, 2), h);
  const auto rest = decoder(words.narrow(0, 2, 1), h, Tensor(), first.s);
  CHECK(largest_difference(cat({first.log_probs, rest.log_probs}), whole.log_probs) < 1e-12);
  CHECK(largest_difference(rest.s, whole.s) < 1e-12);
  CHECK(largest_difference(first.weights, whole.weights.narrow(0, 0, 2)) < 1e-12);
  const auto none = decoder(words.narrow(0, 0, 0), h);
  CHECK(none.log_probs.shape() == Shape{0, 2, 7});
  CHECK(none.weights.shape() == Shape{0, 5, 2});
  CHECK(largest_difference(none.s, decoder.initial_state(h)) == 0);
}

TEST_CASE("bahdanau: names, shapes and initial values match the paper") {
  Rng rng(1);
  const nn::BahdanauDecoder decoder({.vocab = 50, .m = 20, .n = 30, .l = 10, .align = 15}, rng);
  const std::vector<std::pair<std::string, Shape>> want{{"E", {50, 20}},
                                                        {"W", {30, 20}},
                                                        {"U", {30, 30}},
                                                        {"C", {30, 60}},
                                                        {"W_z", {30, 20}},
                                                        {"U_z", {30, 30}},
                                                        {"C_z", {30, 60}},
                                                        {"W_r", {30, 20}},
                                                        {"U_r", {30, 30}},
                                                        {"C_r", {30, 60}},
                                                        {"W_s", {30, 30}},
                                                        {"U_o", {20, 30}},
                                                        {"V_o", {20, 20}},
                                                        {"C_o", {20, 60}},
                                                        {"W_o", {50, 10}},
                                                        {"attention.W_a", {15, 30}},
                                                        {"attention.U_a", {15, 60}},
                                                        {"attention.v_a", {15}}};
  const auto named = decoder.named_parameters();
  REQUIRE(named.size() == want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    CHECK(named[i].first == want[i].first);
    CHECK(named[i].second.shape() == want[i].second);
  }
  const Tensor u = decoder.parameter("U");
  const Tensor product = matmul(u, u.t());
  for (std::int64_t i = 0; i < 30; ++i) {
    CHECK(std::abs(product.select(0, i).select(0, i).item() - 1) < 1e-5);
    CHECK(std::abs(product.select(0, i).select(0, (i + 1) % 30).item()) < 1e-5);
  }
  CHECK(rill::stddev(decoder.parameter("C")).item() == doctest::Approx(0.01).epsilon(0.1));
  CHECK(rill::stddev(decoder.parameter("attention.U_a")).item() == doctest::Approx(0.001).epsilon(0.1));
  CHECK(sum(abs(decoder.parameter("attention.v_a"))).item() == 0);
}

TEST_CASE("bahdanau: mismatched sizes are errors that name both sides") {
  const nn::BahdanauDecoder decoder = small_decoder();
  Rng rng(1);
  nn::BahdanauAttention attention({.state = 3, .annotation = 6, .align = 4}, rng);
  const Tensor words = zeros({2, 3}, int64);
  check_error([&] { attention(zeros({2, 4}), zeros({5, 2, 6})); }, "the state is [2, 4]; it needs [B, 3]");
  check_error(
      [&] {
        attention(zeros({2, 3}), zeros({5, 2, 7}));
      },
      "bahdanau_attention: encoder outputs [5, 2, 7] have width 7");
  check_error(
      [&] {
        attention(zeros({2, 3}), zeros({5, 4, 6}));
      },
      "the state [2, 3] and the annotations [5, 4, 6] differ");
  check_error(
      [&] {
        attention(zeros({2, 3}), zeros({5, 2, 6}), tensor<std::int64_t>({1, 6}));
      },
      "length 6 of row 1");
  check_error(
      [&] {
        decoder(words, zeros({5, 2, 8}, float64));
      },
      "words [2, 3] and annotations [5, 2, 8] do not fit");
  check_error([&] { decoder(words, zeros({5, 3, 6}, float64)); }, "width 6");
  check_error([&] { decoder(words, zeros({0, 3, 8}, float64)); }, "have no first step");
  check_error(
      [&] {
        decoder(words, zeros({5, 3, 8}, float64), Tensor(), zeros({2, 4}, float64));
      },
      "the state is [2, 4]");
  check_error([&] { decoder(full({2, 3}, 7, int64), zeros({5, 3, 8}, float64)); }, "index 7");
  check_error([&] { nn::BahdanauDecoder({.vocab = 7, .m = 3, .n = 4, .l = 0, .align = 5}, rng); }, "l is 0");
  const std::int64_t huge = std::int64_t{1} << 62;  // 2 · 2^62 overflows
  check_error([&] { nn::BahdanauDecoder({.vocab = 7, .m = 3, .n = huge, .l = 2, .align = 5}, rng); },
              "n is 4611686018427387904; sizes must be in 1..268435456");
  check_error([&] { nn::BahdanauAttention({.state = 3, .annotation = 0, .align = 5}, rng); },
              "annotation is 0");
}
