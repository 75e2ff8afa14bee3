#include <rill/nn/recurrent/recurrent.h>

#include <algorithm>
#include <vector>

#include <rill/core/ops.h>
#include <rill/nn/recurrent/sequence_op.h>
#include <rill/nn/recurrent/unit.h>

namespace rill::nn {

const char* name(Cell cell) { return detail::unit_of(cell).name; }

std::optional<Cell> cell_named(std::string_view name) {
  const auto found = std::find_if(cells.begin(), cells.end(), [&](Cell cell) {
    const detail::Unit& unit = detail::unit_of(cell);
    return name == unit.name || name == unit.module;
  });
  return found != cells.end() ? std::optional(*found) : std::nullopt;
}

RecurrentOutput recurrent_sequence(Cell cell, const Tensor& x, std::span<const RecurrentWeights> directions,
                                   const RecurrentInputs& given) {
  return detail::sequence_op(detail::unit_of(cell), x, directions, given);
}

// --- the definition

namespace reference {

RecurrentState recurrent_step(Cell cell, const Tensor& x, const RecurrentState& state,
                              const RecurrentWeights& w) {
  return detail::unit_of(cell).definition(x, state, w);
}

namespace {

/// The new state, and past the end of a sequence its last state.
struct Unrolled {
  std::vector<Tensor> outputs;
  RecurrentState last;
};

Unrolled unroll(Cell cell, const Tensor& x, const RecurrentWeights& w, RecurrentState state, bool reverse,
                const Tensor& lengths) {
  const std::int64_t steps = x.size(0);
  Unrolled out{std::vector<Tensor>(static_cast<std::size_t>(steps)), {}};
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t t = reverse ? steps - 1 - i : i;
    const RecurrentState next = recurrent_step(cell, x.select(0, t), state, w);
    Tensor& output = out.outputs[static_cast<std::size_t>(t)];
    if (!lengths.defined()) {
      state = next;
      output = next.h;
      continue;
    }
    const Tensor valid = gt(lengths, static_cast<double>(t)).unsqueeze(1);
    output = where(valid, next.h, zeros(next.h.shape(), x.dtype()));
    state.h = where(valid, next.h, state.h);
    if (next.c.defined()) state.c = where(valid, next.c, state.c);
  }
  out.last = state;
  return out;
}

}  // namespace

RecurrentOutput recurrent_sequence(Cell cell, const Tensor& x, std::span<const RecurrentWeights> directions,
                                   const RecurrentInputs& given) {
  check(!directions.empty(), "{}: 0 directions; there are 1 or 2", name(cell));
  const std::int64_t batch = x.size(1), hidden = directions[0].hh.size(0);
  std::vector<Tensor> outputs, h, c;
  for (std::size_t d = 0; d < directions.size(); ++d) {
    const auto initial = [&](const Tensor& state) {
      return state.defined() ? state.select(0, static_cast<std::int64_t>(d))
                             : zeros({batch, hidden}, x.dtype());
    };
    const bool has_c = detail::unit_of(cell).states == 2;
    Unrolled one =
        unroll(cell, x, directions[d], {initial(given.state.h), has_c ? initial(given.state.c) : Tensor()},
               d == 1, given.lengths);
    outputs.push_back(one.outputs.empty() ? zeros({0, batch, hidden}, x.dtype()) : stack(one.outputs));
    h.push_back(one.last.h);
    if (has_c) c.push_back(one.last.c);
  }
  return {.output = cat(outputs, 2), .last = {stack(h), c.empty() ? Tensor() : stack(c)}};
}

}  // namespace reference

// --- layers

Recurrent::Recurrent(const RecurrentOptions& options, Rng& rng)
    : RecurrentLayers(detail::unit_of(options.cell), options.layers, rng), cell_(options.cell) {}

RecurrentOutput Recurrent::operator()(const Tensor& x, const RecurrentInputs& given) const {
  return run(x, given);
}

}  // namespace rill::nn
