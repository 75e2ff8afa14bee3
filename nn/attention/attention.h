/// Additive attention from a decoder state to the positions of a source.
///
/// Equations (Bahdanau, Cho and Bengio 2014), for a query h [H] and encoder outputs m_s [M], s < length:
///   energy_s = tanh(W [h; m_s] + b) = tanh(W_q h + k_s)    with keys k_s = W_k m_s + b, once per source
///   weights  = softmax_s(v · energy_s)                     exactly 0 beyond the row's length
///   context  = Σ_s weights_s m_s
/// A row without a valid position has weights 0, context 0 and finite gradients.
#pragma once

#include <cstdint>

#include <rill/nn/layers/linear.h>
#include <rill/nn/module.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// A batch of sources with their projected keys.
struct Memory {
  Tensor values;   ///< encoder outputs [S, B, M]
  Tensor keys;     ///< their keys [S, B, A]; undefined for a decoder without attention
  Tensor lengths;  ///< valid positions of each row [B], int64, in 0 … S; undefined: all S

  std::int64_t steps() const { return values.size(0); }  ///< S
  std::int64_t batch() const { return values.size(1); }  ///< B
  /// The sources `rows` [N] (int64) in that order; a row may repeat, as in beam search.
  Memory rows(const Tensor& rows) const;
};

/// The result of a query.
struct Attended {
  Tensor context;  ///< [B, M]
  Tensor weights;  ///< [B, 1, S]
};

/// softmax(v · tanh(query + keys)) and the values' mean under it, as one op: query [B, A], v [A], memory of B
/// sources whose keys are [S, B, A]. Backward recomputes the tanh instead of saving S·B·A elements. Throws
/// "attention: …" naming both sides if sizes do not match.
Attended additive_attention(const Tensor& query, const Tensor& v, const Memory& memory);

namespace reference {
/// The definition, composed of core ops.
Attended additive_attention(const Tensor& query, const Tensor& v, const Memory& memory);
}  // namespace reference

/// Options of AdditiveAttention.
struct AdditiveAttentionOptions {
  std::int64_t hidden_size = 0;     ///< H, of the query
  std::int64_t memory_size = 0;     ///< M, of the encoder outputs; 0: hidden_size
  std::int64_t attention_size = 0;  ///< A; 0: hidden_size
};

/// Additive attention with parameters `v` [A] (uniform in ±1/√A), `attn.weight` [A, H + M] and `attn.bias`
/// [A].
class AdditiveAttention final : public Module {
 public:
  /// Throws unless all sizes are in 1 … 2^28, where 0 means hidden_size.
  AdditiveAttention(AdditiveAttentionOptions options, Rng& rng);

  /// Projects the keys of encoder outputs [S, B, M], time-major or a transposed batch-first tensor. `lengths`
  /// [B] int64 in 0 … S, or undefined. Throws if they do not match.
  Memory prepare(const Tensor& encoder_outputs, const Tensor& lengths = Tensor()) const;
  /// Attends with the query `hidden` [B, H] or [1, B, H].
  Attended operator()(const Tensor& hidden, const Memory& memory) const;

  /// `attn.weight` in its stored layout [H + M, A]: the first H rows project the query, the others the keys.
  Tensor stored_weight() const;
  const Tensor& v() const noexcept { return v_; }

  const AdditiveAttentionOptions& options() const noexcept { return options_; }  ///< options
  void members(Members& m) override;

 private:
  AdditiveAttentionOptions options_;
  Linear attn_;
  Tensor v_;
};

namespace detail {
/// Throws "op: …" unless encoder outputs [S, B, width] and lengths [B] in 0 … S match.
void check_source(const char* op, const Tensor& values, const Tensor& lengths, std::int64_t width);
/// Throws "op: …" unless the memory has `batch` sources, keys of `size` and a single dtype.
void check_memory(const char* op, const Memory& memory, std::int64_t batch, std::int64_t size, DType dtype);
}  // namespace detail

}  // namespace rill::nn

#pragma GCC visibility pop
