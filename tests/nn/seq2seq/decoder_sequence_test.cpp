#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include <rill/core/core.h>
#include <rill/nn/recurrent/unit.h>
#include <rill/nn/seq2seq/decoder_sequence.h>
#include <support/gradcheck_table.h>
#include <support/same.h>

namespace {

using namespace rill;
using nn::Cell;
using Tensors = std::vector<Tensor>;

/// The sizes and options of a decoder.
struct Setting {
  Cell cell = Cell::gru;
  std::int64_t steps = 4, batch = 3, hidden = 5, size = 4, width = 6, positions = 5, embedded = 3;
  nn::DecoderReading reading = {};
  std::vector<std::int64_t> lengths = {};   ///< of the sources
  std::vector<std::int64_t> steps_of = {};  ///< steps of each sequence

  nn::SequenceRows rows() const {
    return {"test", steps, batch, steps_of.empty() ? Tensor() : tensor(steps_of, {batch})};
  }
};

/// embedded, h, c, attention, v, keys, values, then the unit's five weights (undefined where it has none).
Tensors inputs_of(const Setting& s) {
  const nn::detail::Unit& unit = nn::detail::unit_of(s.cell);
  const std::int64_t gates = unit.gates * s.hidden;
  std::uint64_t seed = 1;
  const auto next = [&](const Shape& shape, bool wanted = true) {
    const double bound = 1.5 / std::sqrt(static_cast<double>(s.hidden));
    return wanted ? test::input_between(shape, -bound, bound, seed++) : Tensor();
  };
  return {next({s.rows().count(), s.embedded}),
          next({s.batch, s.hidden}),
          next({s.batch, s.hidden}, unit.states == 2),
          next({s.hidden + s.width, s.size}),
          next({s.size}),
          next({s.positions, s.batch, s.size}),
          next({s.positions, s.batch, s.width}),
          next({s.embedded + s.width, gates}),
          next({s.hidden, gates}),
          next({gates}),
          next({gates}, unit.biases == 2),
          next({s.hidden, s.hidden}, unit.has_inner())};
}

struct Given {
  nn::DecoderInputs inputs;
  nn::DecoderWeights weights;
  nn::Memory memory;
};

Given given(const Setting& s, const Tensors& in) {
  return {.inputs = {in[0], {in[1], in[2]}},
          .weights = {in[3], in[4], {in[7], in[8], in[9], in[10], in[11]}},
          .memory = {.values = in[6],
                     .keys = in[5],
                     .lengths = s.lengths.empty() ? Tensor() : tensor(s.lengths, {s.batch})}};
}

Tensors results(const nn::DecoderOutputs& out) {
  Tensors all{out.features, out.weights, out.state.h};
  if (out.state.c.defined()) all.push_back(out.state.c);
  return all;
}

GradcheckFunction fused(const Setting& s) {
  return [s](const Tensors& in) {
    const Given g = given(s, in);
    return results(nn::decoder_sequence(s.cell, s.rows(), g.inputs, g.weights, g.memory, s.reading));
  };
}

/// The rows of each sequence, by batch index.
std::vector<std::vector<std::int64_t>> rows_by_sequence(const nn::SequenceRows& rows) {
  std::vector<std::vector<std::int64_t>> of(static_cast<std::size_t>(rows.batch()));
  for (std::int64_t t = 0; t < rows.steps(); ++t) {
    for (std::int64_t p = 0; p < rows.active(t); ++p)
      of[static_cast<std::size_t>(rows.batch_index(p))].push_back(rows.first(t) + p);
  }
  return of;
}

/// The definition for a ragged batch: each sequence alone, for its own number of steps.
nn::DecoderOutputs one_by_one(const Setting& s, const Given& g) {
  const nn::SequenceRows rows = s.rows();
  const auto rows_of = rows_by_sequence(rows);
  const std::int64_t width = s.hidden + s.width + (s.reading.output_embedding ? s.embedded : 0);
  const DType dtype = g.inputs.embedded.dtype();
  nn::DecoderOutputs all{zeros({rows.count(), width}, dtype), zeros({rows.count(), s.positions}, dtype), {}};
  std::vector<Tensor> h, c;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const std::vector<std::int64_t>& own = rows_of[static_cast<std::size_t>(b)];
    const Tensor index = tensor<std::int64_t>({b}), at = tensor(own, {std::ssize(own)});
    nn::DecoderInputs inputs{index_select(g.inputs.embedded, 0, at), g.inputs.state.rows(index)};
    if (!own.empty()) {
      const nn::DecoderOutputs one = nn::reference::decoder_sequence(
          s.cell, {"test", std::ssize(own), 1, Tensor()}, inputs, g.weights, g.memory.rows(index), s.reading);
      all.features = index_add(all.features, 0, at, one.features);
      all.weights = index_add(all.weights, 0, at, one.weights);
      inputs.state = one.state;
    }
    h.push_back(inputs.state.h);
    if (inputs.state.c.defined()) c.push_back(inputs.state.c);
  }
  all.state = {cat(h, 0), c.empty() ? Tensor() : cat(c, 0)};
  return all;
}

GradcheckFunction composed(const Setting& s) {
  return [s](const Tensors& in) {
    const Given g = given(s, in);
    const nn::SequenceRows rows = s.rows();
    Tensors all = results(rows.ragged() ? one_by_one(s, g)
                                        : nn::reference::decoder_sequence(s.cell, rows, g.inputs, g.weights,
                                                                          g.memory, s.reading));
    // All results of the op share one history, which some of these lack.
    for (std::size_t i = 1; i < all.size(); ++i) all[i] = all[i] + mul(sum(all[0]), 0);
    return all;
  };
}

void same_decoder(const Setting& s) { test::same(fused(s), composed(s), inputs_of(s)); }

}  // namespace

TEST_CASE("decoder_sequence: the op over all steps equals its definition with every unit") {
  for (const Cell cell : nn::cells) {
    INFO(name(cell));
    same_decoder({.cell = cell});
    same_decoder({.cell = cell, .reading = {.output_embedding = true}});
    same_decoder({.cell = cell, .reading = {.relu_input = false, .output_embedding = true}});
    same_decoder({.cell = cell, .steps = 1, .batch = 1});
    same_decoder({.cell = cell, .steps = 1, .reading = {.relu_input = false}});
    same_decoder(
        {.cell = cell, .steps = 6, .batch = 9, .hidden = 40, .size = 33, .width = 50, .positions = 11});
  }
}

TEST_CASE("decoder_sequence: the op equals its definition for ragged sources and sequences") {
  for (const Cell cell : nn::cells) {
    INFO(name(cell));
    same_decoder({.cell = cell, .lengths = {5, 2, 0}});
    same_decoder(
        {.cell = cell, .reading = {.output_embedding = true}, .lengths = {3, 5, 1}, .steps_of = {2, 4, 3}});
    same_decoder({.cell = cell, .steps_of = {0, 4, 1}});
  }
}
