/// Layers and directions of a recurrent network, whatever its unit: the options, the walk over layers, and
/// the definition that fused sequence ops are tested against.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <rill/core/ops.h>
#include <rill/nn/layers/dropout.h>
#include <rill/nn/recurrent/sequence.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// The options of GRU and RAU, with PyTorch's names.
struct RecurrentOptions {
  std::int64_t input_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;  ///< x and output are [B, T, ..]; states stay [.., B, H]
  double dropout = 0;        ///< on each layer's output but the last one's, while training
  bool bidirectional = false;

  std::int64_t directions() const noexcept { return bidirectional ? 2 : 1; }
  /// What layer k reads.
  std::int64_t input_of(std::int64_t layer) const noexcept {
    return layer == 0 ? input_size : directions() * hidden_size;
  }
};

/// The options of one step's module.
struct CellOptions {
  std::int64_t input_size = 0;
  std::int64_t hidden_size = 0;
  bool bias = true;
};

namespace detail {

/// Throws "GRU: …" unless the sizes are at least 1.
void check_options(const char* module, const RecurrentOptions& o);
void check_options(const char* module, const CellOptions& o);
/// Throws "op: …" unless x and h0 are what layers with these options read.
void check_layer_inputs(const char* op, const RecurrentOptions& o, const Tensor& x, const Tensor& h0);
/// The same for a cell: x [B, I] and h [B, H] or undefined.
void check_cell_inputs(const char* op, const CellOptions& o, const Tensor& x, const Tensor& h);

/// Each layer reads the states of the one before: x → {output [T, B, D·H], h_n [layers · D, B, H]}, batch
/// first where the options say so. `layer(k, x, given)` runs layer k, time-major.
template <class Layer>
SequenceOutput run_layers(const char* op, const RecurrentOptions& o, const Dropout& dropout, const Tensor& x,
                          const SequenceInputs& given, Layer&& layer) {
  check_layer_inputs(op, o, x, given.h0);
  const std::int64_t d = o.directions();
  SequenceOutput out{.output = o.batch_first ? x.transpose(0, 1) : x, .h_n = {}};
  std::vector<Tensor> last;
  for (std::int64_t k = 0; k < o.num_layers; ++k) {
    if (k > 0) out.output = dropout(out.output);
    const Tensor h0 = given.h0.defined() ? given.h0.narrow(0, k * d, d) : Tensor();
    out = layer(k, out.output, SequenceInputs{.h0 = h0, .lengths = given.lengths});
    last.push_back(out.h_n);
  }
  if (last.size() > 1) out.h_n = cat(last, 0);
  if (o.batch_first) out.output = out.output.transpose(0, 1);
  return out;
}

/// One step of a batch as a sequence of one: x [B, I], h [B, H] or undefined → h' [B, H].
template <class Layer>
Tensor run_cell(const char* op, const CellOptions& o, const Tensor& x, const Tensor& h, Layer&& layer) {
  check_cell_inputs(op, o, x, h);
  return layer(x.unsqueeze(0), SequenceInputs{.h0 = h.defined() ? h.unsqueeze(0) : h, .lengths = {}})
      .h_n.squeeze(0);
}

}  // namespace detail

namespace reference {

/// A layer over T steps as T times `step(d, x [B, I], h [B, H])`, with masks for ragged batches: the
/// definition of what a fused sequence op computes. x [T, B, I] → output [T, B, D·H], h_n [D, B, H].
template <class Step>
SequenceOutput sequence(const Tensor& x, std::int64_t directions, std::int64_t hidden,
                        const SequenceInputs& given, Step&& step) {
  const std::int64_t steps = x.size(0), batch = x.size(1);
  const Tensor none = zeros({batch, hidden}, x.dtype());
  std::vector<Tensor> outputs, last;
  for (std::int64_t d = 0; d < directions; ++d) {
    Tensor h = given.h0.defined() ? given.h0.select(0, d) : none;
    std::vector<Tensor> states(static_cast<std::size_t>(steps));
    for (std::int64_t i = 0; i < steps; ++i) {
      const std::int64_t t = d == 0 ? i : steps - 1 - i;
      const Tensor next = step(d, x.select(0, t), h);
      Tensor& state = states[static_cast<std::size_t>(t)];
      if (given.lengths.defined()) {
        const Tensor valid = gt(given.lengths, static_cast<double>(t)).unsqueeze(1);
        h = where(valid, next, h);
        state = where(valid, next, none);
      } else {
        h = state = next;
      }
    }
    outputs.push_back(steps == 0 ? zeros({0, batch, hidden}, x.dtype()) : stack(states));
    last.push_back(h);
  }
  return {.output = cat(outputs, 2), .h_n = stack(last)};
}

}  // namespace reference

}  // namespace rill::nn

#pragma GCC visibility pop
