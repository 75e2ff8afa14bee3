#include <rill/nn/recurrent/sequence_op.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <rill/core/autograd.h>
#include <rill/core/ops/matmul_into.h>
#include <rill/core/parallel.h>
#include <rill/nn/recurrent/sequence_rows.h>
#include <rill/nn/recurrent/sequence_steps.h>
#include <rill/nn/recurrent/step.h>

namespace rill::nn::detail {
namespace {

using rill::detail::raw;

/// The sizes of one call.
struct SequenceSizes {
  std::int64_t steps = 0, batch = 0, input = 0, hidden = 0, directions = 0;
  std::int64_t states = 1;  ///< 1: h; 2: h and c
  std::int64_t gates = 0;   ///< G
  std::int64_t flops = 0;   ///< of a row
};

/// Indices of the op's inputs; those of the weights follow.
enum : int { input_x, input_h0, input_c0, first_weight };
constexpr int weights_at(std::size_t direction) noexcept {
  return first_weight + weights_per_unit * static_cast<int>(direction);
}

using StatePair = std::array<Tensor, 2>;  ///< h and c

/// A state in one direction over all steps.
struct StateTensors {
  Tensor previous;  ///< [rows, H], the state before each row
  Tensor next;      ///< [T, B, H], the new states; may be the same memory for all steps
};

/// The op's outputs and the states of each direction.
struct SequenceStates {
  Tensor output;
  StatePair last;  ///< [D, B, H]
  std::vector<std::array<StateTensors, 2>> directions;
};

/// Saved for the backward pass of one direction.
struct KeptDirection {
  Saved ih, hh;
  std::optional<Saved> inner;
  std::array<std::optional<Saved>, 2> previous;  ///< states [rows, H]
  GateGradients gates;                           ///< the activations until backward runs
};

// --- forward

/// A full batch stores its states only once: the state before a row is the output of the adjacent step, so
/// the output is stored between blocks of initial states for both directions. A ragged batch stores them
/// packed, in addition to the output.
Tensor make_output(const SequenceRows& rows, const SequenceSizes& s, DType dtype,
                   std::vector<std::array<StateTensors, 2>>& directions) {
  const std::int64_t width = s.directions * s.hidden, block = s.batch * width;
  const Shape shape{s.steps, s.batch, width};
  const bool ragged = rows.ragged();
  const Tensor all = empty(ragged ? shape : Shape{s.steps + 2, s.batch, width}, dtype);
  const auto view = [&](const Shape& of, std::int64_t offset) {
    const Strides strides = of.size() == 3 ? contiguous_strides(of) : Strides{width, 1};
    return rill::detail::make_view(all.impl().storage, dtype, of, strides, offset);
  };
  const Tensor output = ragged ? all : view(shape, block);
  const Shape packed{rows.count(), s.hidden};
  for (std::int64_t d = 0; d < s.directions; ++d) {
    directions[static_cast<std::size_t>(d)][0] = {
        ragged ? empty(packed, dtype) : view(packed, d == 0 ? 0 : 2 * block + s.hidden),
        output.narrow(2, d * s.hidden, s.hidden)};
  }
  return output;
}

/// Cell states are not an output. A full batch stores T + 1 of each sequence; a ragged one packs the states
/// before each row, and the new ones overwrite each other in c_n.
StateTensors make_cell_states(const SequenceRows& rows, const SequenceSizes& s, std::int64_t d,
                              const Tensor& c_n) {
  const Shape packed{rows.count(), s.hidden};
  if (rows.ragged()) {
    return {empty(packed, c_n.dtype()), c_n.select(0, d).unsqueeze(0).expand({s.steps, s.batch, s.hidden})};
  }
  const Tensor all = empty({s.steps + 1, s.batch, s.hidden}, c_n.dtype());
  return {all.narrow(0, d == 0 ? 0 : 1, s.steps).reshape(packed), all.narrow(0, d == 0 ? 1 : 0, s.steps)};
}

SequenceStates make_states(const SequenceRows& rows, const SequenceSizes& s, DType dtype) {
  SequenceStates states;
  states.directions.resize(static_cast<std::size_t>(s.directions));
  states.output = make_output(rows, s, dtype, states.directions);
  for (std::size_t i = 0; i < static_cast<std::size_t>(s.states); ++i)
    states.last[i] = empty({s.directions, s.batch, s.hidden}, dtype);
  if (s.states < 2) return states;
  for (std::int64_t d = 0; d < s.directions; ++d)
    states.directions[static_cast<std::size_t>(d)][1] = make_cell_states(rows, s, d, states.last[1]);
  return states;
}

/// The states of direction d of [D, B, H]; null if there are none.
template <class T>
T* of_direction(const Tensor& states, std::size_t d) {
  return states.defined() ? raw<T>(states.select(0, static_cast<std::int64_t>(d))) : nullptr;
}

template <class T>
Direction<T> make_direction(const SequenceSizes& s, std::size_t d, const GateGradients& g) {
  return {.reverse = d == 1,
          .hidden = s.hidden,
          .width = s.gates,
          .gates = raw<T>(g.gates),
          .q = raw_or_null<T>(g.q),
          .candidate = raw_or_null<T>(g.candidate)};
}

KeptDirection make_kept(const Unit& unit, const SequenceRows& rows, const SequenceSizes& s,
                        const RecurrentWeights& w, const std::array<StateTensors, 2>& states) {
  const DType dtype = w.ih.dtype();
  return {.ih = Saved(w.ih, unit.name),
          .hh = Saved(w.hh, unit.name),
          .inner = save_if_defined(w.inner, unit.name),
          .previous = {save_if_defined(states[0].previous, unit.name),
                       save_if_defined(states[1].previous, unit.name)},
          .gates = {.gates = empty({rows.count(), s.gates}, dtype),
                    .q = unit.candidate >= 0 ? empty({rows.count(), s.hidden}, dtype) : Tensor(),
                    .candidate = {}}};
}

/// Computes outputs and last states; returns what to save for backward.
template <class T>
std::vector<KeptDirection> run_forward(const Unit& unit, const SequenceRows& rows, const SequenceSizes& s,
                                       const Tensor& x, std::span<const RecurrentWeights> weights,
                                       const StatePair& initial, const SequenceStates& states) {
  const FlushDenormals flush;
  const Tensor products = empty({s.directions, s.batch, s.gates}, dtype_of<T>);
  std::vector<KeptDirection> kept;
  std::vector<Tensor> biases;
  std::vector<Direction<T>> directions;
  std::vector<Step<T>> steps;
  for (std::size_t d = 0; d < weights.size(); ++d) {
    const KeptDirection& k = kept.emplace_back(make_kept(unit, rows, s, weights[d], states.directions[d]));
    matmul_into({k.gates.gates, 0}, x, k.ih());
    biases.push_back(added_biases(unit, weights[d], s.hidden, dtype_of<T>));
    steps.emplace_back(unit, Pass::forward, k.hh(), restored(k.inner), s.batch);
    Direction<T>& direction = directions.emplace_back(make_direction<T>(s, d, k.gates));
    direction.bias = raw<const T>(biases.back());
    direction.products = of_direction<T>(products, d);
    for (std::size_t i = 0; i < static_cast<std::size_t>(s.states); ++i) {
      const auto& [previous, next] = states.directions[d][i];
      direction.states[i] = {previous, next};
      put_initial_states(rows, direction, direction.states[i], of_direction<const T>(initial[i], d));
    }
  }
  rows.for_each_chunk(s.flops, dtype_of<T>, s.directions,
                      [&](std::size_t d, std::int64_t begin, std::int64_t end) {
                        forward_chunk(rows, directions[d], steps[d], begin, end);
                      });
  for (std::size_t d = 0; d < weights.size(); ++d) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(s.states); ++i) {
      take_last_states(rows, directions[d], directions[d].states[i], of_direction<const T>(initial[i], d),
                       of_direction<T>(states.last[i], d));
    }
  }
  return kept;
}

// --- backward

/// Overwrites the saved activations with gradients, and the gradients of the last states, by position, with
/// those of the initial states.
template <class T>
void run_backward(const Unit& unit, const SequenceRows& rows, const SequenceSizes& s,
                  std::vector<KeptDirection>& kept, const Tensor& doutput, const StatePair& dstates,
                  bool wants_initial) {
  std::vector<Direction<T>> directions;
  std::vector<Step<T>> steps;
  for (std::size_t d = 0; d < kept.size(); ++d) {
    KeptDirection& k = kept[d];
    if (unit.has_inner()) k.gates.candidate = empty({rows.count(), s.hidden}, dtype_of<T>);
    steps.emplace_back(unit, Pass::backward, k.hh(), restored(k.inner), s.batch);
    Direction<T>& direction = directions.emplace_back(make_direction<T>(s, d, k.gates));
    for (std::size_t i = 0; i < static_cast<std::size_t>(s.states); ++i) {
      const bool is_output = i == 0 && doutput.defined();
      direction.states[i] = {
          (*k.previous[i])(),
          is_output ? doutput.narrow(2, static_cast<std::int64_t>(d) * s.hidden, s.hidden) : Tensor()};
      direction.gradients[i] = of_direction<T>(dstates[i], d);
    }
  }
  rows.for_each_chunk(s.flops, dtype_of<T>, s.directions,
                      [&](std::size_t d, std::int64_t begin, std::int64_t end) {
                        backward_chunk(rows, directions[d], steps[d], wants_initial, begin, end);
                      });
}

/// Gradients of x and of each ih, from the gates of the input side.
void input_gradients(const SequenceRows& rows, std::span<const KeptDirection> kept, const Tensor& x,
                     Grads& d) {
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (auto dih = d[weights_at(i)]) matmul_into(dih.slot(), x.t(), kept[i].gates.gates);
  }
  auto dx = d[input_x];
  if (!dx) return;
  rows.write(dx.slot(), [&](Slot to) {
    for (const KeptDirection& k : kept) {
      matmul_into(to, k.gates.gates, k.ih().t());
      to.beta = 1;
    }
  });
}

/// All gradients of the op.
void sequence_gradients(const Unit& unit, const SequenceRows& rows, const SequenceSizes& s, const Tensor& x,
                        std::vector<KeptDirection> kept, Outputs dy, Grads& d) {
  const FlushDenormals flush;
  if (d.retains_graph()) {
    for (KeptDirection& k : kept) k.gates = k.gates.clone();
  }
  StatePair dstates;
  for (std::size_t i = 0; i < static_cast<std::size_t>(s.states); ++i) {
    const int output = 1 + static_cast<int>(i);
    dstates[i] = empty({s.directions, s.batch, s.hidden}, x.dtype());
    dy.has(output) ? dstates[i].copy_(rows.by_position(dy[output])) : dstates[i].zero_();
  }
  Tensor doutput = dy.has(0) ? dy[0] : Tensor();
  if (doutput.defined() && doutput.stride(2) != 1) doutput = doutput.contiguous();
  const bool wants_initial = d[input_h0] || d[input_c0];
  visit_floating(unit.name, x.dtype(), [&]<class T>(Type<T>) {
    run_backward<T>(unit, rows, s, kept, doutput, dstates, wants_initial);
  });
  if (auto dh0 = d[input_h0]) dh0.give(rows.by_batch_index(dstates[0]));
  if (auto dc0 = d[input_c0]) dc0.give(rows.by_batch_index(dstates[1]));
  for (std::size_t i = 0; i < kept.size(); ++i)
    weight_gradients(unit, kept[i].gates, (*kept[i].previous[0])(), weights_at(i), d);
  input_gradients(rows, kept, x, d);
}

// --- the op

SequenceSizes check_sequence(const Unit& unit, const Tensor& x, std::span<const RecurrentWeights> weights,
                             const RecurrentState& state) {
  const char* op = unit.name;
  check(x.dim() == 3, "{}: the input is {}; it needs 3 dimensions, [T, B, I]", op, x.shape());
  check(is_floating(x.dtype()), "{}: the input is {}; use .to(float32)", op, name(x.dtype()));
  check(weights.size() == 1 || weights.size() == 2, "{}: {} directions; there are 1 or 2", op,
        weights.size());
  SequenceSizes s{.steps = x.size(0),
                  .batch = x.size(1),
                  .input = x.size(2),
                  .hidden = check_weights(unit, weights[0], x.size(2), x.dtype()),
                  .directions = std::ssize(weights),
                  .states = unit.states};
  const std::int64_t other = check_weights(unit, weights.back(), s.input, x.dtype());
  check(other == s.hidden, "{}: one direction has {} hidden, the other {}", op, s.hidden, other);
  const Shape wanted{s.directions, s.batch, s.hidden};
  check_fits(op, "h0", state.h, wanted, x.dtype());
  check(unit.states == 2 || !state.c.defined(), "{}: the unit has no cell state; leave c out", op);
  check_fits(op, "c0", state.c, wanted, x.dtype());
  s.gates = unit.gates * s.hidden;
  s.flops = 2 * s.hidden * (s.gates + (unit.has_inner() ? s.hidden : 0)) + 100 * s.hidden;
  return s;
}

Tensor contiguous_or_none(const Tensor& t) { return t.defined() ? t.contiguous() : t; }

}  // namespace

RecurrentOutput sequence_op(const Unit& unit, const Tensor& x, std::span<const RecurrentWeights> directions,
                            const RecurrentInputs& given) {
  const SequenceSizes s = check_sequence(unit, x, directions, given.state);
  SequenceRows rows(unit.name, s.steps, s.batch, given.lengths);
  SequenceStates states;
  std::vector<KeptDirection> kept;
  Tensor inputs;
  {
    const NoGrad no_grad;
    inputs = rows.gather(x);
    const StatePair initial{contiguous_or_none(given.state.h), contiguous_or_none(given.state.c)};
    states = make_states(rows, s, x.dtype());
    kept = visit_floating(unit.name, x.dtype(), [&]<class T>(Type<T>) {
      return run_forward<T>(unit, rows, s, inputs, directions, initial, states);
    });
  }
  std::vector<TensorRef> from{x, given.state.h, given.state.c};
  for (const RecurrentWeights& w : directions) {
    for (const TensorRef& t : weight_inputs(w)) from.push_back(t);
  }
  const auto recorded = [&](auto outputs) {
    return record(
        unit.name, std::move(outputs), from,
        [&unit, rows = std::move(rows), s, saved = Saved(inputs, unit.name), kept = std::move(kept)](
            Outputs dy, Grads& d) { sequence_gradients(unit, rows, s, saved(), kept, dy, d); });
  };
  if (unit.states == 1) {
    auto [output, h] = recorded(std::array{states.output, states.last[0]});
    return {.output = std::move(output), .last = std::move(h)};
  }
  auto [output, h, c] = recorded(std::array{states.output, states.last[0], states.last[1]});
  return {.output = std::move(output), .last = {std::move(h), std::move(c)}};
}

}  // namespace rill::nn::detail
