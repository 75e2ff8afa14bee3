#include <rill/nn/seq2seq/bahdanau.h>

#include <vector>

#include <rill/nn/attention/attention.h>
#include <rill/nn/init.h>
#include <rill/nn/recurrent/recurrent_layers.h>

namespace rill::nn {
namespace {

Tensor normal(const Shape& shape, double deviation, Rng& rng) {
  return init::normal_(empty(shape), 0, deviation, rng).set_requires_grad();
}

Tensor orthogonal(std::int64_t n, Rng& rng) {
  return init::orthogonal_(empty({n, n}), rng).set_requires_grad();
}

void check_size(const char* module, const char* what, std::int64_t size) {
  check(detail::is_size(size), "{}: {} is {}; sizes must be in 1..{}", module, what, size,
        detail::largest_size);
}

BahdanauDecoderOptions checked(const BahdanauDecoderOptions& o) {
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"vocab", o.vocab}, {"m", o.m}, {"n", o.n}, {"l", o.l}, {"align", o.align}};
  for (const auto& [what, size] : sizes) check_size("BahdanauDecoder", what, size);
  return o;
}

}  // namespace

// --- alignment

BahdanauAttention::BahdanauAttention(BahdanauAttentionOptions options, Rng& rng) : options_(options) {
  check_size("BahdanauAttention", "state", options.state);
  check_size("BahdanauAttention", "annotation", options.annotation);
  check_size("BahdanauAttention", "align", options.align);
  w_a_ = normal({options.align, options.state}, 0.001, rng);
  u_a_ = normal({options.align, options.annotation}, 0.001, rng);
  v_a_ = init::zeros_(empty({options.align})).set_requires_grad();
}

Tensor BahdanauAttention::keys(const Tensor& h) const {
  detail::check_not_moved_from("bahdanau_attention", u_a_.defined());
  return linear(h, u_a_);
}

BahdanauAligned BahdanauAttention::align(const Tensor& s, const Tensor& h, const Tensor& keys,
                                         const Tensor& lengths) const {
  detail::check_not_moved_from("bahdanau_attention", w_a_.defined());
  const auto [context, weights] =
      additive_attention(linear(s, w_a_), v_a_, {.values = h, .keys = keys, .lengths = lengths});
  return {.weights = weights.squeeze(1).t(), .context = context};
}

BahdanauAligned BahdanauAttention::operator()(const Tensor& s, const Tensor& h, const Tensor& lengths) const {
  check(s.dim() == 2 && s.size(1) == options_.state, "bahdanau_attention: the state is {}; it needs [B, {}]",
        s.shape(), options_.state);
  detail::check_source("bahdanau_attention", h, lengths, options_.annotation);
  check(s.size(0) == h.size(1), "bahdanau_attention: the state {} and the annotations {} differ in the batch",
        s.shape(), h.shape());
  return align(s, h, keys(h), lengths);
}

void BahdanauAttention::members(Members& m) { m("W_a", w_a_)("U_a", u_a_)("v_a", v_a_); }

// --- decoder

BahdanauDecoder::BahdanauDecoder(BahdanauDecoderOptions options, Rng& rng)
    : options_(checked(options)),
      attention_({.state = options.n, .annotation = 2 * options.n, .align = options.align}, rng) {
  constexpr double deviation = 0.01;
  const std::int64_t m = options.m, n = options.n, l = options.l;
  e_ = normal({options.vocab, m}, deviation, rng);
  for (Tensor* w : {&w_, &w_z_, &w_r_}) *w = normal({n, m}, deviation, rng);
  for (Tensor* u : {&u_, &u_z_, &u_r_}) *u = orthogonal(n, rng);
  for (Tensor* c : {&c_, &c_z_, &c_r_}) *c = normal({n, 2 * n}, deviation, rng);
  w_s_ = normal({n, n}, deviation, rng);
  u_o_ = normal({2 * l, n}, deviation, rng);
  v_o_ = normal({2 * l, m}, deviation, rng);
  c_o_ = normal({2 * l, 2 * n}, deviation, rng);
  w_o_ = normal({options.vocab, l}, deviation, rng);
}

Tensor BahdanauDecoder::initial_state(const Tensor& h) const {
  detail::check_not_moved_from("bahdanau_decoder", w_s_.defined());
  detail::check_source("bahdanau_decoder", h, Tensor(), 2 * options_.n);
  check(h.size(0) >= 1, "bahdanau_decoder: annotations of shape {} have no first step; pass the first state",
        h.shape());
  return tanh(linear(h.select(0, 0).narrow(1, options_.n, options_.n), w_s_));
}

BahdanauDecoded BahdanauDecoder::operator()(const Tensor& words, const Tensor& h, const Tensor& lengths,
                                            const Tensor& first) const {
  detail::check_not_moved_from("bahdanau_decoder", e_.defined());
  const std::int64_t n = options_.n;
  detail::check_source("bahdanau_decoder", h, lengths, 2 * n);
  check(words.dim() == 2 && words.size(1) == h.size(1),
        "bahdanau_decoder: words {} and annotations {} do not fit; pass [T, B] and [S, B, {}]", words.shape(),
        h.shape(), 2 * n);
  Tensor s = first.defined() ? first : initial_state(h);
  check(s.shape() == Shape{h.size(1), n}, "bahdanau_decoder: the state is {}; annotations {} need [{}, {}]",
        s.shape(), h.shape(), h.size(1), n);
  const std::int64_t steps = words.size(0), batch = words.size(1), source = h.size(0);
  if (steps == 0) {
    return {zeros({0, batch, options_.vocab}, h.dtype()), zeros({0, source, batch}, h.dtype()), s};
  }
  const Tensor y = embedding(e_, words);                       // [T, B, m]
  const Tensor keys = attention_.keys(h);                      // [S, B, n']
  const Tensor from_words = linear(y, cat({w_z_, w_r_, w_}));  // [T, B, 3n]
  const Tensor state_weight = cat({u_z_, u_r_}), context_weight = cat({c_z_, c_r_, c_});
  std::vector<Tensor> states, contexts, weights;
  for (std::int64_t t = 0; t < steps; ++t) {
    const auto [alpha, c] = attention_.align(s, h, keys, lengths);
    const Tensor given = from_words.select(0, t) + linear(c, context_weight);  // [B, 3n]
    const Tensor gates = sigmoid(given.narrow(1, 0, 2 * n) + linear(s, state_weight));
    const Tensor z = gates.narrow(1, 0, n), r = gates.narrow(1, n, n);
    const Tensor candidate = tanh(given.narrow(1, 2 * n, n) + linear(r * s, u_));
    states.push_back(s);
    contexts.push_back(c);
    weights.push_back(alpha);
    s = (1.0 - z) * s + z * candidate;
  }
  const Tensor t =
      linear(stack(states), u_o_) + linear(y, v_o_) + linear(stack(contexts), c_o_);  // [T, B, 2l]
  const Tensor maxout = amax(t.reshape({steps, batch, options_.l, 2}), {-1});
  return {log_softmax(linear(maxout, w_o_), -1), stack(weights), s};
}

void BahdanauDecoder::members(Members& m) {
  m("E", e_)("W", w_)("U", u_)("C", c_);
  m("W_z", w_z_)("U_z", u_z_)("C_z", c_z_)("W_r", w_r_)("U_r", u_r_)("C_r", c_r_);
  m("W_s", w_s_)("U_o", u_o_)("V_o", v_o_)("C_o", c_o_)("W_o", w_o_)("attention", attention_);
}

}  // namespace rill::nn
