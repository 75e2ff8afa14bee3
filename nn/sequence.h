/// What recurrent layers share: their inputs and outputs, and how they reach the rows of a batch of sequences.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <rill/core/autograd.h>
#include <rill/core/tensor.h>
#include <rill/nn/packed_rows.h>

namespace rill::nn {

/// What may be given to a recurrent layer besides its input: `gru(x, {.h0 = state, .lengths = lengths})`.
struct SequenceInputs {
  Tensor h0 = {};       ///< first states [layers · directions, B, H]; absent: zeros
  Tensor lengths = {};  ///< valid steps of each sequence, int64 [B] in 0 … T, in any order; absent: all T
};

/// What a recurrent layer gives.
struct SequenceOutput {
  Tensor output;  ///< states of the last layer; 0 past a sequence's length
  Tensor
      h_n;  ///< each layer's and direction's last state [layers · directions, B, H]; h0 where the length is 0
};

namespace detail {

/// x [T, B, W] of a dense batch as a matrix [T·B, W] that shares its data; nothing where its layout forbids that.
std::optional<Tensor> as_matrix(const PackedRows& rows, const Tensor& x);

/// The rows of x [T, B, W] as a matrix [total, W], neighbouring columns: a view where possible. Not recorded.
Tensor gather(const PackedRows& rows, const Tensor& x);

/// slot.to [T, B, W] = slot.beta · slot.to + the rows of a matrix [total, W]; past the lengths nothing is added.
void scatter(const PackedRows& rows, const Slot& slot, const Tensor& matrix);

/// Fills slot.to [T, B, W] through write(Slot), which writes a matrix [total, W].
template <class F>
void write_rows(const PackedRows& rows, const Slot& slot, F&& write) {
  if (const auto matrix = as_matrix(rows, slot.to)) return write(Slot{*matrix, slot.beta});
  const Tensor buffer = empty({rows.total(), slot.to.size(2)}, slot.to.dtype());
  write(Slot{buffer, 0});
  scatter(rows, slot, buffer);
}

/// Ranges of ranks that threads may work on side by side, each over all steps: borders 0 = b_0 < … < b_n = B with about
/// equally many rows between. One range when a row costs so few `flops` that threads do not pay.
std::vector<std::int64_t> shares(const PackedRows& rows, std::int64_t flops);

}  // namespace detail
}  // namespace rill::nn
