/// A recurrent layer over a whole sequence as one op: what GRU and RAU have in common. Internal to them.
///
/// Forward: the input side of all steps as one product, then the steps. Backward: the steps in the opposite
/// order, turning what was kept of the gates into their gradients in place, then one product for each weight.
/// Rows are those of SequenceRows; the batch is cut into shares once for all steps, so threads meet once a
/// sequence and no bit depends on their number.
///
/// A Cell says what a unit is:
///   name, gates                 of the op; blocks of H columns, of which number 2 is the candidate, whose
///                               hidden product q is multiplied by the reset gate, so that its input side has
///                               a gradient of its own
///   products                    how many H × H matrices a step multiplies with
///   Weights                     {ih [I, G], hh [H, G], two more}, G = gates · H
///   rest(w), check_rest(…)      references to the two more; throws unless they fit
///   inner(w)                    the matrix inside a step, kept for the gradient
///   Forward<T>(w, hh, batch)    a step of m rows: see forward_share
///   Backward<T>(kept, batch)    the way back of m rows: see backward_share
///   rest_gradients(kept, at, d) gradients of the two more, inputs at and at + 1
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <rill/core/autograd.h>
#include <rill/core/ops/matmul_into.h>
#include <rill/core/ops/packed_weight.h>
#include <rill/core/parallel.h>
#include <rill/nn/recurrent/sequence.h>

namespace rill::nn::detail {

/// The sizes of one call.
struct SequenceSizes {
  std::int64_t steps, batch, input, hidden, directions;
  std::int64_t width() const noexcept { return directions * hidden; }
};

/// What one direction keeps for its gradient, one row for each of SequenceRows.
struct KeptSide {
  Saved ih, hh;
  std::optional<Saved> inner;  ///< the matrix inside a step, if it has one
  Saved before;                ///< the state before each row, [rows, H]
  Tensor gates;                ///< [rows, G]
  Tensor q;                    ///< the hidden product of the candidate, [rows, H]
  Tensor candidate = {};       ///< [rows, H], made on the way back by cells with an inner matrix
};

/// The outputs, and where the state before each row is kept, for each direction [rows, H].
struct SequenceStates {
  Tensor output, h_n;
  std::vector<Tensor> before;
};

/// One direction, as its steps see it. `before` has row distance `ld`.
template <class T>
struct Side {
  bool reverse = false;
  std::int64_t hidden = 0;
  T* before = nullptr;
  std::int64_t ld = 0;
  T* gates = nullptr;
  T* q = nullptr;
  T* candidate = nullptr;
  T* states = nullptr;  ///< [T, B, ·] in the order of the batch: the output, or its gradient (may be null)
  std::int64_t by_step = 0, by_sequence = 0;
  T* space = nullptr;  ///< forward [B, G]: a step's hidden products; backward [B, H]: the state's gradient

  T* state(std::int64_t t, std::int64_t sequence) const noexcept {
    return states ? states + t * by_step + sequence * by_sequence : nullptr;
  }
  /// The step a sequence begins or ends with.
  std::int64_t start(std::int64_t length) const noexcept { return reverse ? length - 1 : 0; }
  std::int64_t end(std::int64_t length) const noexcept { return reverse ? 0 : length - 1; }
};

/// Sizes of a call; throws "op: …" unless x, the weights [I, G] and [H, G] of each direction and h0 fit each
/// other.
SequenceSizes check_sequence(const char* op, std::int64_t gates, const Tensor& x,
                             std::span<const std::array<Tensor, 2>> weights, const Tensor& h0);
/// Throws "op: …" unless t, a weight of that name, is undefined or of this shape and dtype.
void check_weight(const char* op, const char* what, const Tensor& t, const Shape& shape, DType dtype);
/// A matrix of w's numbers that can be packed: w itself unless neither stride is 1. Without history.
Tensor packable(const Tensor& w);
/// Room for the outputs and the states before each row.
SequenceStates make_states(const SequenceRows& rows, const SequenceSizes& s, DType dtype);
/// `from` [D, B, H] with its sequences in the order of places, or back.
Tensor reordered(const SequenceRows& rows, const Tensor& from, bool back);
/// The op's inputs are x, h0 and four weights for each direction: ih, hh and the rest. This is the number of
/// one's ih.
constexpr int weights_at(std::size_t direction) noexcept { return 2 + 4 * static_cast<int>(direction); }
/// slot.to [G] = slot.beta · slot.to + the sums of the gradients of the input side, whose candidate block
/// lies in q.
void input_bias_gradient(const KeptSide& k, const Slot& slot);
/// Gradients of x and of each ih. Moves q into its place among the gates, which then are those of the input
/// side.
void input_gradients(const SequenceRows& rows, std::span<const KeptSide> kept, const Tensor& x, Grads& d);

/// Puts the first states (h0 [B, H], null for zeros) where the first step of each sequence reads them.
template <class T>
void put_first_states(const SequenceRows& rows, const Side<T>& s, const T* h0);
/// h_n [B, H] of one direction: each sequence's last state, its first one where there is no step.
template <class T>
void take_last_states(const SequenceRows& rows, const Side<T>& s, const T* h0, T* h_n);

/// All steps of the places begin … end - 1. A ragged batch has its states copied on to where the next step
/// reads them.
template <class T, class Step>
void forward_share(const SequenceRows& rows, const Side<T>& s, const Step& step, std::int64_t begin,
                   std::int64_t end) {
  const std::int64_t hidden = s.hidden, width = Step::gates * hidden, steps = rows.steps();
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t t = s.reverse ? steps - 1 - i : i;
    const std::int64_t last = std::min(end, rows.active(t));
    for (std::int64_t place = std::max(begin, last); place < end; ++place) {
      std::fill_n(s.state(t, rows.sequence(place)), hidden, T(0));
    }
    if (begin >= last) continue;
    const std::int64_t row = rows.first(t) + begin;
    const auto state = [&](std::int64_t k) { return s.state(t, rows.sequence(begin + k)); };
    step(last - begin, s.before + row * s.ld, s.ld, s.gates + row * width, s.q + row * hidden,
         s.space + begin * width, state);
    const std::int64_t next = s.reverse ? t - 1 : t + 1;
    if (!rows.ragged() || next < 0 || next >= steps) continue;
    for (std::int64_t place = begin; place < last && next < rows.length(place); ++place) {
      std::copy_n(s.state(t, rows.sequence(place)), hidden, s.before + (rows.first(next) + place) * s.ld);
    }
  }
}

/// The same in the opposite order: gates and q become their gradients, `space` becomes that of the first
/// states.
template <class T, class Step>
void backward_share(const SequenceRows& rows, const Side<T>& s, const Step& step, bool wants_h0,
                    std::int64_t begin, std::int64_t end) {
  const std::int64_t hidden = s.hidden, width = Step::gates * hidden, steps = rows.steps();
  for (std::int64_t i = steps - 1; i >= 0; --i) {
    const std::int64_t t = s.reverse ? steps - 1 - i : i;
    const std::int64_t last = std::min(end, rows.active(t));
    if (begin >= last) continue;
    const std::int64_t row = rows.first(t) + begin;
    const auto dstate = [&](std::int64_t k) -> const T* { return s.state(t, rows.sequence(begin + k)); };
    T* candidate = s.candidate ? s.candidate + row * hidden : nullptr;
    step(last - begin, s.before + row * s.ld, s.ld, s.gates + row * width, s.q + row * hidden, candidate,
         dstate, s.space + begin * hidden, i > 0 || wants_h0);
  }
}

/// Runs share(d, begin, end) for all directions and all shares of the batch, side by side where that pays.
template <class T, class F>
void run_sides(const SequenceRows& rows, const SequenceSizes& s, std::int64_t products, F&& share) {
  const std::vector<std::int64_t> borders =
      rows.shares(2 * products * s.hidden * s.hidden + 100 * s.hidden, dtype_of<T>, s.directions);
  const auto parts = static_cast<std::int64_t>(borders.size()) - 1;
  parallel_for(parts * s.directions, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto part = static_cast<std::size_t>(i % parts);
      share(static_cast<std::size_t>(i / parts), borders[part], borders[part + 1]);
    }
  });
}

template <class T>
Side<T> make_side(std::int64_t d, const SequenceSizes& s, const Tensor& before, const KeptSide* kept,
                  const Tensor& states) {
  Side<T> side{
      .reverse = d == 1, .hidden = s.hidden, .before = rill::detail::raw<T>(before), .ld = before.stride(0)};
  if (kept) {
    side.gates = rill::detail::raw<T>(kept->gates);
    side.q = rill::detail::raw<T>(kept->q);
    if (kept->candidate.defined()) side.candidate = rill::detail::raw<T>(kept->candidate);
  }
  if (!states.defined()) return side;
  side.states = rill::detail::raw<T>(states) + d * s.hidden;
  side.by_step = states.stride(0);
  side.by_sequence = states.stride(1);
  return side;
}

/// Computes output and h_n; returns what the gradient needs.
template <class T, class Cell>
std::vector<KeptSide> sequence_forward(const SequenceRows& rows, const SequenceSizes& s, const Tensor& x,
                                       std::span<const typename Cell::Weights> directions, const Tensor& h0,
                                       const SequenceStates& to) {
  using Step = typename Cell::template Forward<T>;
  const FlushDenormals flush;
  const DType dtype = dtype_of<T>;
  const std::int64_t width = Cell::gates * s.hidden, states = s.batch * s.hidden;
  const Tensor space = empty({s.directions, s.batch, width}, dtype);
  const T* first = h0.defined() ? rill::detail::raw<const T>(h0) : nullptr;
  std::vector<KeptSide> kept;
  std::vector<Side<T>> sides;
  std::vector<Step> steps;
  for (std::int64_t d = 0; d < s.directions; ++d) {
    const auto& w = directions[static_cast<std::size_t>(d)];
    const Tensor& before = to.before[static_cast<std::size_t>(d)];
    const Tensor ih = w.ih.detach(), hh = packable(w.hh);
    kept.push_back({.ih = Saved(ih, Cell::name),
                    .hh = Saved(hh, Cell::name),
                    .inner = Cell::inner(w),
                    .before = Saved(before, Cell::name),
                    .gates = empty({rows.count(), width}, dtype),
                    .q = empty({rows.count(), s.hidden}, dtype)});
    matmul_into({kept.back().gates, 0}, x, ih);
    steps.emplace_back(w, hh, s.batch);
    sides.push_back(make_side<T>(d, s, before, &kept.back(), to.output));
    sides.back().space = rill::detail::raw<T>(space) + d * s.batch * width;
    put_first_states(rows, sides.back(), first ? first + d * states : nullptr);
  }
  run_sides<T>(rows, s, Cell::products, [&](std::size_t d, std::int64_t begin, std::int64_t end) {
    forward_share(rows, sides[d], steps[d], begin, end);
  });
  for (std::int64_t d = 0; d < s.directions; ++d) {
    take_last_states(rows, sides[static_cast<std::size_t>(d)], first ? first + d * states : nullptr,
                     rill::detail::raw<T>(to.h_n) + d * states);
  }
  return kept;
}

/// Fills kept gates and q with their gradients; returns the gradient of h0, in the order of places.
template <class T, class Cell>
Tensor sequence_backward(const SequenceRows& rows, const SequenceSizes& s, std::vector<KeptSide>& kept,
                         Outputs dy, bool wants_h0) {
  using Step = typename Cell::template Backward<T>;
  Tensor dh = empty({s.directions, s.batch, s.hidden}, dtype_of<T>);
  dy.has(1) ? dh.copy_(reordered(rows, dy[1], false)) : dh.zero_();
  Tensor dstates = dy.has(0) ? dy[0] : Tensor();
  if (dstates.defined() && dstates.stride(2) != 1) dstates = dstates.contiguous();
  std::vector<Side<T>> sides;
  std::vector<Step> steps;
  for (std::int64_t d = 0; d < s.directions; ++d) {
    KeptSide& k = kept[static_cast<std::size_t>(d)];
    if (k.inner) k.candidate = empty({rows.count(), s.hidden}, dtype_of<T>);
    steps.emplace_back(k, s.batch);
    sides.push_back(make_side<T>(d, s, k.before(), &k, dstates));
    sides.back().space = rill::detail::raw<T>(dh) + d * s.batch * s.hidden;
  }
  run_sides<T>(rows, s, Cell::products, [&](std::size_t d, std::int64_t begin, std::int64_t end) {
    backward_share(rows, sides[d], steps[d], wants_h0, begin, end);
  });
  return dh;
}

/// The whole of the way back: all gradients of the op, whose inputs are x, h0 and for each direction ih, hh
/// and the rest.
template <class Cell>
void sequence_gradients(const SequenceRows& rows, const SequenceSizes& s, const Tensor& x,
                        std::vector<KeptSide> kept, Outputs dy, Grads& d) {
  const FlushDenormals flush;
  if (d.keeps_graph()) {
    for (KeptSide& k : kept) {
      k.gates = k.gates.clone();
      k.q = k.q.clone();
    }
  }
  const bool wants_h0 = static_cast<bool>(d[1]);
  const Tensor dh = visit_floating(Cell::name, x.dtype(), [&]<class T>(Type<T>) {
    return sequence_backward<T, Cell>(rows, s, kept, dy, wants_h0);
  });
  if (auto dh0 = d[1]) dh0.give(reordered(rows, dh, true));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const int at = weights_at(i);
    if (auto dhh = d[at + 1]) matmul_into(dhh.slot(), kept[i].before().t(), kept[i].gates);
    Cell::rest_gradients(kept[i], at + 2, d);
  }
  input_gradients(rows, kept, x, d);
}

/// The op: x [T, B, I] → output [T, B, D·H], h_n [D, B, H].
template <class Cell>
SequenceOutput sequence_op(const Tensor& x, std::span<const typename Cell::Weights> directions,
                           const SequenceInputs& given) {
  std::vector<std::array<Tensor, 2>> weights;
  for (const auto& w : directions) weights.push_back({w.ih, w.hh});
  const SequenceSizes s = check_sequence(Cell::name, Cell::gates, x, weights, given.h0);
  for (const auto& w : directions) Cell::check_rest(w, s.hidden, x.dtype());
  SequenceRows rows(Cell::name, s.steps, s.batch, given.lengths);
  SequenceStates made;
  std::vector<KeptSide> kept;
  Tensor inputs;
  {
    const NoGrad no_grad;
    inputs = rows.gather(x);
    const Tensor h0 = given.h0.defined() ? given.h0.contiguous() : Tensor();
    made = make_states(rows, s, x.dtype());
    kept = visit_floating(Cell::name, x.dtype(), [&]<class T>(Type<T>) {
      return sequence_forward<T, Cell>(rows, s, inputs, directions, h0, made);
    });
  }
  std::vector<TensorRef> from{x, given.h0};
  for (const auto& w : directions) {
    from.insert(from.end(), {w.ih, w.hh});
    for (const TensorRef& t : Cell::rest(w)) from.push_back(t);
  }
  auto [output, h_n] =
      record(Cell::name, std::array{made.output, made.h_n}, from,
             [rows = std::move(rows), s, saved = Saved(inputs, Cell::name), kept = std::move(kept)](
                 Outputs dy, Grads& d) { sequence_gradients<Cell>(rows, s, saved(), kept, dy, d); });
  return {.output = output, .h_n = h_n};
}

}  // namespace rill::nn::detail
