/// The translation decoder of Bahdanau, Cho and Bengio ("Neural machine translation by jointly learning to
/// align and translate", 2014), appendix A, with the paper's names. There are no biases.
///
///   e_j = v_a · tanh(W_a s + U_a h_j)             of state s with annotation h_j = [forward; backward]
///   α = softmax(e),  c = Σ_j α_j h_j              over the positions within a row's length
///   s_0 = tanh(W_s h_1[n:])                       h_1[n:]: the backward half of the first annotation
///   z = σ(W_z y + U_z s + C_z c),  r = σ(W_r y + U_r s + C_r c)       y: the embedding E of the word before
///   s~ = tanh(W y + U (r ∘ s) + C c),  s' = (1 - z) ∘ s + z ∘ s~
///   t = U_o s + V_o y + C_o c                     from the state before the update
///   log p = log_softmax(W_o m)                    m_k = max(t_2k, t_2k+1): a maxout layer
///
/// V words, m embedding size, n state size, annotations of 2n, l maxout units, n' alignment units; T target
/// and S source steps.
#pragma once

#include <cstdint>

#include <rill/nn/module.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// Options of BahdanauAttention.
struct BahdanauAttentionOptions {
  std::int64_t state = 0;       ///< size of s
  std::int64_t annotation = 0;  ///< size of h_j
  std::int64_t align = 0;       ///< n'
};

/// The result of an alignment.
struct BahdanauAligned {
  Tensor weights;  ///< [S, B], exactly 0 past a row's length
  Tensor context;  ///< [B, annotation]
};

/// The alignment model. Parameters `W_a` [align, state], `U_a` [align, annotation] (normal, deviation 0.001)
/// and `v_a` [align] (zeros), as in the paper.
class BahdanauAttention final : public Module {
 public:
  /// Throws unless all sizes are in 1 … 2^28.
  BahdanauAttention(BahdanauAttentionOptions options, Rng& rng);

  /// s [B, state], annotations h [S, B, annotation], lengths int64 [B] in 0 … S or undefined. A row without a
  /// valid position has weights and context 0. Throws "bahdanau_attention: …" naming both sides if they do
  /// not match.
  BahdanauAligned operator()(const Tensor& s, const Tensor& h, const Tensor& lengths = Tensor()) const;
  /// The same with U_a h precomputed by `keys`, since it does not depend on the state.
  BahdanauAligned align(const Tensor& s, const Tensor& h, const Tensor& keys, const Tensor& lengths) const;
  /// U_a h: [S, B, align].
  Tensor keys(const Tensor& h) const;

  const BahdanauAttentionOptions& options() const noexcept { return options_; }  ///< options
  void members(Members& m) override;

 private:
  BahdanauAttentionOptions options_;
  Tensor w_a_, u_a_, v_a_;
};

/// Options of BahdanauDecoder, with the paper's names.
struct BahdanauDecoderOptions {
  std::int64_t vocab = 0;  ///< V
  std::int64_t m = 0;      ///< embedding size
  std::int64_t n = 0;      ///< state size; annotations have 2n
  std::int64_t l = 0;      ///< maxout units
  std::int64_t align = 0;  ///< n'
};

/// The result of decoding T steps.
struct BahdanauDecoded {
  Tensor log_probs;  ///< [T, B, V]
  Tensor weights;    ///< [T, S, B]
  Tensor s;          ///< [B, n], the state after the last step
};

/// The decoder. Parameters, in this order: `E` [V, m]; `W` [n, m], `U` [n, n], `C` [n, 2n]; `W_z`, `U_z`,
/// `C_z`, `W_r`, `U_r`, `C_r` likewise; `W_s` [n, n]; `U_o` [2l, n], `V_o` [2l, m], `C_o` [2l, 2n]; `W_o` [V,
/// l]; `attention.…`. As in the paper, U, U_z and U_r are initialized orthogonal, the others normal with
/// standard deviation 0.01.
class BahdanauDecoder final : public Module {
 public:
  /// Throws unless all sizes are in 1 … 2^28.
  BahdanauDecoder(BahdanauDecoderOptions options, Rng& rng);

  /// s_0 [B, n] of annotations h [S, B, 2n]; needs S >= 1.
  Tensor initial_state(const Tensor& h) const;
  /// Teacher forcing: the words int64 [T, B] before each target, annotations h [S, B, 2n], lengths int64 [B]
  /// in 0 … S or undefined. `s` is the initial state; undefined: initial_state(h). Everything that does not
  /// depend on the states is computed for all steps at once.
  BahdanauDecoded operator()(const Tensor& words, const Tensor& h, const Tensor& lengths = Tensor(),
                             const Tensor& s = Tensor()) const;

  const BahdanauDecoderOptions& options() const noexcept { return options_; }  ///< options
  void members(Members& m) override;

 private:
  BahdanauDecoderOptions options_;
  Tensor e_;
  Tensor w_, u_, c_, w_z_, u_z_, c_z_, w_r_, u_r_, c_r_;
  Tensor w_s_, u_o_, v_o_, c_o_, w_o_;
  BahdanauAttention attention_;
};

}  // namespace rill::nn

#pragma GCC visibility pop
