#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include <rill/core/core.h>
#include <rill/nn/attention/attention.h>
#include <support/expect.h>
#include <support/gradcheck_table.h>
#include <support/same.h>

namespace {

using namespace rill;
using test::all_finite;
using Tensors = std::vector<Tensor>;

struct Sizes {
  std::int64_t steps, batch, size, width;
  std::vector<std::int64_t> lengths = {};
};

/// query, v, keys, values.
Tensors inputs_of(const Sizes& s) {
  return {test::input({s.batch, s.size}, 1), test::input({s.size}, 2),
          test::input({s.steps, s.batch, s.size}, 3), test::input({s.steps, s.batch, s.width}, 4)};
}

template <class F>
GradcheckFunction attention_function(const Sizes& s, F f) {
  const Tensor lengths = s.lengths.empty() ? Tensor() : tensor(s.lengths, {s.batch});
  return [f, lengths](const Tensors& in) {
    const nn::Attended out = f(in[0], in[1], nn::Memory{.values = in[3], .keys = in[2], .lengths = lengths});
    return Tensors{out.context, out.weights};
  };
}

void same_attention(const Sizes& s) {
  test::same(attention_function(s, nn::additive_attention),
             attention_function(s, nn::reference::additive_attention), inputs_of(s));
}

bool all_zero(const Tensor& t) {
  const std::vector<double> v = t.to_vector();
  return std::all_of(v.begin(), v.end(), [](double x) { return x == 0; });
}

}  // namespace

TEST_CASE("attention: the op equals its definition") {
  same_attention({.steps = 7, .batch = 3, .size = 6, .width = 5});
  same_attention({.steps = 1, .batch = 1, .size = 1, .width = 1});
  same_attention({.steps = 5, .batch = 1, .size = 33, .width = 17});
  same_attention({.steps = 9, .batch = 40, .size = 65, .width = 40});
}

TEST_CASE("attention: the op equals its definition for ragged sources") {
  same_attention({.steps = 7, .batch = 4, .size = 6, .width = 5, .lengths = {4, 7, 1, 6}});
  same_attention({.steps = 4, .batch = 3, .size = 20, .width = 9, .lengths = {0, 4, 2}});
}

TEST_CASE("attention: padded positions have weight 0, whatever their contents") {
  Rng rng(2);
  nn::AdditiveAttention attention({.hidden_size = 4, .memory_size = 3, .attention_size = 5}, rng);
  const Tensor lengths = tensor<std::int64_t>({2, 4});
  Tensor outputs = randn({4, 2, 3}, rng), hidden = randn({2, 4}, rng);
  Tensor junk = outputs.clone();
  junk.narrow(0, 2, 2).select(1, 0).fill_(std::numeric_limits<double>::quiet_NaN());
  std::array<std::vector<double>, 2> contexts, gradients;
  for (std::size_t i = 0; i < 2; ++i) {
    attention.zero_grad();
    const nn::Attended found = attention(hidden, attention.prepare(i == 0 ? outputs : junk, lengths));
    CHECK(all_zero(found.weights.select(0, 0).narrow(1, 2, 2)));
    sum(square(found.context)).backward();
    contexts[i] = found.context.to_vector();
    gradients[i] = attention.parameter("attn.weight").grad().to_vector();
  }
  CHECK(contexts[0] == contexts[1]);
  CHECK(gradients[0] == gradients[1]);
}

TEST_CASE("attention: a row without a valid position has weights 0, context 0 and finite gradients") {
  Rng rng(3);
  nn::AdditiveAttention attention({.hidden_size = 4}, rng);
  Tensor outputs = randn({3, 2, 4}, rng).set_requires_grad(),
         hidden = randn({1, 2, 4}, rng).set_requires_grad();
  const nn::Attended found = attention(hidden, attention.prepare(outputs, tensor<std::int64_t>({0, 3})));
  CHECK(found.weights.shape() == Shape{2, 1, 3});
  CHECK(all_zero(found.weights.select(0, 0)));
  CHECK(all_zero(found.context.select(0, 0)));
  CHECK(found.weights.select(0, 1).to_vector()[0] > 0);
  (sum(square(found.context)) + sum(square(found.weights))).backward();
  for (const auto& [name, parameter] : attention.named_parameters())
    CHECK_MESSAGE(all_finite(parameter.grad()), name);
  CHECK(all_finite(outputs.grad()));
  CHECK(all_zero(outputs.grad().select(1, 0)));
  CHECK(all_zero(hidden.grad().select(1, 0)));
}

TEST_CASE("attention: a transposed batch-first memory gives the same bits as a copy") {
  Rng rng(4);
  nn::AdditiveAttention attention({.hidden_size = 4, .memory_size = 6}, rng);
  const Tensor outputs = randn({2, 5, 6}, rng), hidden = randn({2, 4}, rng);
  const nn::Attended view = attention(hidden, attention.prepare(outputs.transpose(0, 1)));
  const nn::Attended copy = attention(hidden, attention.prepare(outputs.transpose(0, 1).contiguous()));
  CHECK(view.context.to_vector() == copy.context.to_vector());
  CHECK(view.weights.to_vector() == copy.weights.to_vector());
}

TEST_CASE("attention: a row has the same bits alone and in a batch") {
  Rng rng(5);
  nn::AdditiveAttention attention({.hidden_size = 8}, rng);
  const Tensor outputs = randn({6, 3, 8}, rng), hidden = randn({3, 8}, rng);
  const nn::Memory all = attention.prepare(outputs, tensor<std::int64_t>({6, 3, 5}));
  const nn::Memory one = all.rows(tensor<std::int64_t>({1, 1}));
  const Tensor query = matmul(hidden, attention.stored_weight().narrow(0, 0, hidden.size(1)));
  const nn::Attended among = nn::additive_attention(query, attention.v(), all);
  const nn::Attended twice = nn::additive_attention(query.narrow(0, 1, 1).expand({2, 8}), attention.v(), one);
  CHECK(twice.context.select(0, 1).to_vector() == among.context.select(0, 1).to_vector());
  CHECK(twice.weights.select(0, 0).to_vector() == among.weights.select(0, 1).to_vector());
}

TEST_CASE("attention: empty batches and sources give empty or zero results") {
  Rng rng(6);
  nn::AdditiveAttention attention({.hidden_size = 4}, rng);
  const nn::Attended none = attention(zeros({0, 4}), attention.prepare(zeros({5, 0, 4})));
  CHECK(none.context.shape() == Shape{0, 4});
  CHECK(none.weights.shape() == Shape{0, 1, 5});
  const nn::Attended blank = attention(ones({2, 4}), attention.prepare(zeros({0, 2, 4})));
  CHECK(blank.weights.shape() == Shape{2, 1, 0});
  CHECK(all_zero(blank.context));
  CHECK_NOTHROW(sum(blank.context).backward());
}

TEST_CASE("attention: mismatched sizes are errors that name both sides") {
  Rng rng(7);
  nn::AdditiveAttention attention({.hidden_size = 4, .memory_size = 6}, rng);
  const nn::Memory memory = attention.prepare(zeros({5, 3, 6}), tensor<std::int64_t>({5, 1, 2}));
  CHECK_THROWS_WITH_AS(attention(zeros({2, 4}), memory),
                       "attention: 2 rows of hidden, 3 of the memory [5, 3, 6]; they must be the same batch",
                       Error);
  CHECK_THROWS_WITH_AS(attention(zeros({3, 5}), memory),
                       "attention: hidden [3, 5] has width 5, hidden_size is 4", Error);
  CHECK_THROWS_WITH_AS(attention(zeros({2, 3, 4}), memory),
                       "attention: hidden of shape [2, 3, 4]; pass [batch, 4] or [1, batch, 4]", Error);
  CHECK_THROWS_WITH_AS(attention.prepare(zeros({5, 3, 4})),
                       "attention: encoder outputs [5, 3, 4] have width 4, the module was made for 6", Error);
  CHECK_THROWS_WITH_AS(attention.prepare(zeros({15, 6})),
                       "attention: encoder outputs of shape [15, 6]; pass [steps, batch, size]", Error);
  CHECK_THROWS_WITH_AS(
      attention.prepare(zeros({5, 3, 6}), tensor<std::int64_t>({5, 6, 1})),
      "attention: length 6 of row 1 is outside 0..5, the steps of the encoder outputs [5, 3, 6]", Error);
  CHECK_THROWS_AS(attention.prepare(zeros({5, 3, 6}), tensor<std::int64_t>({5, -1, 1})), Error);
  CHECK_THROWS_WITH_AS(attention.prepare(zeros({5, 3, 6}), tensor<std::int64_t>({5, 1})),
                       "attention: lengths are int64 [2], the encoder outputs [5, 3, 6]; pass int64 [3]",
                       Error);
  CHECK_THROWS_WITH_AS(attention(zeros({3, 4}, float64), memory),
                       "attention: encoder outputs or hidden are float64, the parameters float32; use "
                       ".to(float32)",
                       Error);
  nn::Memory other = memory;
  other.keys = zeros({5, 3, 7});
  CHECK_THROWS_AS(attention(zeros({3, 4}), other), Error);
  CHECK_THROWS_AS(nn::AdditiveAttention({.hidden_size = 0}, rng), Error);
  const std::int64_t huge = std::int64_t{1} << 62;  // 2 · 2^62 overflows
  CHECK_THROWS_WITH_AS(nn::AdditiveAttention({.hidden_size = huge, .memory_size = huge}, rng),
                       doctest::Contains("memory_size 4611686018427387904 and"), Error);
}
