/// The GRU over a whole sequence as one op.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <rill/core/autograd.h>
#include <rill/core/ops/matmul_into.h>
#include <rill/core/packed_matrix.h>
#include <rill/core/parallel.h>
#include <rill/nn/gru.h>
#include <rill/nn/gru_kernels.h>

namespace rill::nn {
namespace {

/// The sizes of one call.
struct Sizes {
  std::int64_t steps, batch, input, hidden, directions;
  std::int64_t width() const noexcept { return directions * hidden; }
};

/// What one direction keeps for its gradient; rows in the order of SequenceRows.
struct Kept {
  Saved ih, hh;  // weights
  Saved before;  // the state before each row, [rows, H]
  Tensor gates;  // r, z, n of each row, [rows, 3H]
  Tensor q;      // the hidden part of n, [rows, H]
};

void check_same_dtype(const Tensor& x, const Tensor& other, const char* what) {
  check(x.dtype() == other.dtype(), "gru: dtypes {} (input) and {} ({}) differ; use .to({})", name(x.dtype()),
        name(other.dtype()), what, name(x.dtype()));
}

void check_weights(const Tensor& x, const GruWeights& w, const Sizes& s) {
  check(w.ih.shape() == Shape{s.input, 3 * s.hidden},
        "gru: the input weight is {}; an input of {} and {} hidden need [{}, {}]", w.ih.shape(), x.shape(),
        s.hidden, s.input, 3 * s.hidden);
  check(w.hh.shape() == Shape{s.hidden, 3 * s.hidden},
        "gru: the hidden weight is {}; {} hidden need [{}, {}]", w.hh.shape(), s.hidden, s.hidden,
        3 * s.hidden);
  check_same_dtype(x, w.ih, "input weight");
  check_same_dtype(x, w.hh, "hidden weight");
  for (const Tensor& bias : {w.bias_ih, w.bias_hh}) {
    if (!bias.defined()) continue;
    check(bias.shape() == Shape{3 * s.hidden}, "gru: a bias is {}; {} hidden need [{}]", bias.shape(),
          s.hidden, 3 * s.hidden);
    check_same_dtype(x, bias, "bias");
  }
}

Sizes check_all(const Tensor& x, std::span<const GruWeights> directions, const Tensor& h0) {
  check(x.dim() == 3, "gru: the input is {}; it needs 3 dimensions, [T, B, I]", x.shape());
  check(is_floating(x.dtype()), "gru: the input is {}; use .to(float32)", name(x.dtype()));
  check(directions.size() == 1 || directions.size() == 2, "gru: {} directions; there are 1 or 2",
        directions.size());
  check(directions[0].hh.dim() == 2, "gru: the hidden weight is {}; it needs [H, 3H]",
        directions[0].hh.shape());
  const Sizes s{x.size(0), x.size(1), x.size(2), directions[0].hh.size(0),
                static_cast<std::int64_t>(directions.size())};
  for (const GruWeights& w : directions) check_weights(x, w, s);
  if (h0.defined()) {
    const Shape wanted{s.directions, s.batch, s.hidden};
    check(h0.shape() == wanted, "gru: h0 is {}; an input of {} with {} hidden needs {}", h0.shape(),
          x.shape(), s.hidden, wanted);
    check_same_dtype(x, h0, "h0");
  }
  return s;
}

/// A matrix of w's numbers that can be packed: w itself unless neither stride is 1.
Tensor packable(const Tensor& w) {
  const Tensor plain = w.detach();
  return plain.stride(0) == 1 || plain.stride(1) == 1 ? plain : plain.contiguous();
}

/// The biases as the kernel wants them, [4H]: r and z summed, n's input side, n's hidden side.
template <class T>
Tensor joined_bias(const GruWeights& w, std::int64_t hidden) {
  Tensor joined = zeros({4 * hidden}, dtype_of<T>);
  Tensor input_side = joined.narrow(0, 0, 3 * hidden);
  if (w.bias_ih.defined()) input_side.copy_(w.bias_ih.detach());
  if (!w.bias_hh.defined()) return joined;
  const Tensor bias = w.bias_hh.detach();
  joined.narrow(0, 0, 2 * hidden).add_(bias.narrow(0, 0, 2 * hidden));
  joined.narrow(0, 3 * hidden, hidden).copy_(bias.narrow(0, 2 * hidden, hidden));
  return joined;
}

/// One direction, as its steps see it. Rows are those of SequenceRows; `before` has row distance `ld`.
template <class T>
struct Side {
  bool reverse;
  std::int64_t hidden;
  std::shared_ptr<const PackedMatrix<T>> product;  // h·W_hh forward, its transpose backward
  T* before;
  std::int64_t ld;
  T* gates;
  T* q;
  const T* bias;
  T* states;  // [T, B, ·] in the order of the batch: the output, or its gradient (may be null)
  std::int64_t by_step, by_sequence;
  T* space;  // [B, 3H] forward: the hidden products of a step; [B, H] backward: the gradient of the state

  T* state(std::int64_t t, std::int64_t sequence) const noexcept {
    return states + t * by_step + sequence * by_sequence;
  }
  /// The step a sequence begins or ends with.
  std::int64_t start(std::int64_t length) const noexcept { return reverse ? length - 1 : 0; }
  std::int64_t end(std::int64_t length) const noexcept { return reverse ? 0 : length - 1; }
};

/// All steps of the places begin … end - 1. A ragged batch has its states copied on to where the next step
/// reads them.
template <class T>
void forward_share(const SequenceRows& rows, const Side<T>& s, std::int64_t begin, std::int64_t end) {
  const std::int64_t hidden = s.hidden, steps = rows.steps();
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t t = s.reverse ? steps - 1 - step : step;
    const std::int64_t last = std::min(end, rows.active(t));
    for (std::int64_t place = std::max(begin, last); place < end; ++place) {
      std::fill_n(s.state(t, rows.sequence(place)), hidden, T(0));
    }
    if (begin >= last) continue;
    const std::int64_t row = rows.first(t) + begin;
    s.product->multiply(last - begin, s.before + row * s.ld, s.ld, T(0), s.space + begin * 3 * hidden,
                        3 * hidden);
    for (std::int64_t place = begin; place < last; ++place) {
      const std::int64_t at = rows.first(t) + place;
      T* h = s.state(t, rows.sequence(place));
      kernels::gru_gates<T>(hidden, s.space + place * 3 * hidden, s.bias, s.before + at * s.ld,
                            s.gates + at * 3 * hidden, s.q + at * hidden, h);
      const std::int64_t next = s.reverse ? t - 1 : t + 1;
      if (rows.ragged() && next >= 0 && next < rows.length(place)) {
        std::copy_n(h, hidden, s.before + (rows.first(next) + place) * s.ld);
      }
    }
  }
}

/// The same in the opposite order: gates and q become their gradients, `space` becomes that of the first
/// states.
template <class T>
void backward_share(const SequenceRows& rows, const Side<T>& s, bool wants_h0, std::int64_t begin,
                    std::int64_t end) {
  const std::int64_t hidden = s.hidden, steps = rows.steps();
  for (std::int64_t step = steps - 1; step >= 0; --step) {
    const std::int64_t t = s.reverse ? steps - 1 - step : step;
    const std::int64_t last = std::min(end, rows.active(t));
    if (begin >= last) continue;
    for (std::int64_t place = begin; place < last; ++place) {
      const std::int64_t at = rows.first(t) + place;
      const T* dy = s.states ? s.state(t, rows.sequence(place)) : nullptr;
      kernels::gru_gates_backward<T>(hidden, s.before + at * s.ld, dy, s.gates + at * 3 * hidden,
                                     s.q + at * hidden, s.space + place * hidden);
    }
    if (step == 0 && !wants_h0) continue;
    const std::int64_t row = rows.first(t) + begin;
    s.product->multiply(last - begin, s.gates + row * 3 * hidden, 3 * hidden, T(1), s.space + begin * hidden,
                        hidden);
  }
}

/// Runs share(side, begin, end) for all sides and all shares of the batch, side by side where that pays.
template <class T, class F>
void run_sides(const SequenceRows& rows, const std::vector<Side<T>>& sides, F&& share) {
  const std::int64_t hidden = sides[0].hidden;
  const std::vector<std::int64_t> borders =
      rows.shares(6 * hidden * hidden + 100 * hidden, static_cast<std::int64_t>(sides.size()));
  const auto parts = static_cast<std::int64_t>(borders.size()) - 1;
  const auto all = parts * static_cast<std::int64_t>(sides.size());
  parallel_for(all, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto part = static_cast<std::size_t>(i % parts);
      share(sides[static_cast<std::size_t>(i / parts)], borders[part], borders[part + 1]);
    }
  });
}

/// The outputs, and where the state before each row is kept.
struct States {
  Tensor output, h_n;
  std::vector<Tensor> before;  // of each direction, [rows, H]
};

/// A full batch keeps its states once: the state before a row is the output one step away, so the output lies
/// between a block of first states for either direction. A ragged batch keeps them packed besides the output.
States make_states(const SequenceRows& rows, const Sizes& s, DType dtype) {
  const std::int64_t block = s.batch * s.width();
  States made{.output = {}, .h_n = empty({s.directions, s.batch, s.hidden}, dtype), .before = {}};
  if (rows.ragged()) {
    made.output = empty({s.steps, s.batch, s.width()}, dtype);
    for (std::int64_t d = 0; d < s.directions; ++d)
      made.before.push_back(empty({rows.count(), s.hidden}, dtype));
    return made;
  }
  const Ref<Storage> all = empty({s.steps + 2, s.batch, s.width()}, dtype).impl().storage;
  const Shape shape{s.steps, s.batch, s.width()};
  made.output = detail::make_view(all, dtype, shape, contiguous_strides(shape), block);
  for (std::int64_t d = 0; d < s.directions; ++d) {
    const std::int64_t offset = d == 0 ? 0 : 2 * block + s.hidden;
    made.before.push_back(detail::make_view(all, dtype, {rows.count(), s.hidden}, {s.width(), 1}, offset));
  }
  return made;
}

template <class T>
Side<T> make_side(std::int64_t d, const Sizes& s, const Tensor& before, const Tensor& gates,
                  const Tensor& q) {
  return {.reverse = d == 1,
          .hidden = s.hidden,
          .product = nullptr,
          .before = detail::raw<T>(before),
          .ld = before.stride(0),
          .gates = detail::raw<T>(gates),
          .q = detail::raw<T>(q),
          .bias = nullptr,
          .states = nullptr,
          .by_step = 0,
          .by_sequence = 0,
          .space = nullptr};
}

/// Puts the first states (h0 [B, H], null for zeros) where the first step of each sequence reads them.
template <class T>
void put_first_states(const SequenceRows& rows, const Side<T>& s, const T* h0) {
  for (std::int64_t place = 0; place < rows.batch() && rows.length(place) > 0; ++place) {
    T* to = s.before + (rows.first(s.start(rows.length(place))) + place) * s.ld;
    if (h0) {
      std::copy_n(h0 + rows.sequence(place) * s.hidden, s.hidden, to);
    } else {
      std::fill_n(to, s.hidden, T(0));
    }
  }
}

/// h_n [B, H] of one direction: each sequence's last state, its first one where there is no step.
template <class T>
void take_last_states(const SequenceRows& rows, const Side<T>& s, const T* h0, T* h_n) {
  for (std::int64_t place = 0; place < rows.batch(); ++place) {
    const std::int64_t sequence = rows.sequence(place), length = rows.length(place);
    T* to = h_n + sequence * s.hidden;
    if (length > 0) {
      std::copy_n(s.state(s.end(length), sequence), s.hidden, to);
    } else if (h0) {
      std::copy_n(h0 + sequence * s.hidden, s.hidden, to);
    } else {
      std::fill_n(to, s.hidden, T(0));
    }
  }
}

/// Computes output and h_n; returns what the gradient needs.
template <class T>
std::vector<Kept> forward(const SequenceRows& rows, const Sizes& s, const Tensor& x,
                          std::span<const GruWeights> directions, const Tensor& h0, const States& to) {
  const FlushDenormals flush;
  const DType dtype = dtype_of<T>;
  const Tensor space = empty({s.directions, s.batch, 3 * s.hidden}, dtype);
  const T* first = h0.defined() ? detail::raw<const T>(h0) : nullptr;
  const std::int64_t state_size = s.batch * s.hidden;
  std::vector<Kept> kept;
  std::vector<Side<T>> sides;
  std::vector<Tensor> biases;
  for (std::int64_t d = 0; d < s.directions; ++d) {
    const GruWeights& w = directions[static_cast<std::size_t>(d)];
    const Tensor& before = to.before[static_cast<std::size_t>(d)];
    const Tensor gates = empty({rows.count(), 3 * s.hidden}, dtype),
                 q = empty({rows.count(), s.hidden}, dtype);
    const Tensor ih = w.ih.detach(), hh = packable(w.hh);
    matmul_into({gates, 0}, x, ih);
    biases.push_back(joined_bias<T>(w, s.hidden));
    Side<T> side = make_side<T>(d, s, before, gates, q);
    side.product = packed<T>(hh);
    side.bias = detail::raw<const T>(biases.back());
    side.states = detail::raw<T>(to.output) + d * s.hidden;
    side.by_step = s.batch * s.width();
    side.by_sequence = s.width();
    side.space = detail::raw<T>(space) + d * 3 * state_size;
    put_first_states(rows, side, first ? first + d * state_size : nullptr);
    sides.push_back(std::move(side));
    kept.push_back({save(ih, "gru"), save(hh, "gru"), save(before, "gru"), gates, q});
  }
  run_sides(rows, sides, [&](const Side<T>& side, std::int64_t begin, std::int64_t end) {
    forward_share(rows, side, begin, end);
  });
  for (std::int64_t d = 0; d < s.directions; ++d) {
    take_last_states(rows, sides[static_cast<std::size_t>(d)], first ? first + d * state_size : nullptr,
                     detail::raw<T>(to.h_n) + d * state_size);
  }
  return kept;
}

// --- the way back ------------------------------------------------------------------------------------------

/// `from` [D, B, H] with its sequences in the order of places, or back.
Tensor reordered(const SequenceRows& rows, const Tensor& from, bool back) {
  if (!rows.ragged()) return from.contiguous();
  Tensor to = empty(from.shape(), from.dtype());
  for (std::int64_t place = 0; place < rows.batch(); ++place) {
    const std::int64_t sequence = rows.sequence(place);
    to.select(1, back ? sequence : place).copy_(from.select(1, back ? place : sequence));
  }
  return to;
}

/// Fills kept gates and q with their gradients; returns the gradient of h0, in the order of places.
template <class T>
Tensor backward_steps(const SequenceRows& rows, const Sizes& s, const std::vector<Kept>& kept, Outputs dy,
                      bool wants_h0) {
  Tensor dh = empty({s.directions, s.batch, s.hidden}, dtype_of<T>);
  dy.has(1) ? dh.copy_(reordered(rows, dy[1], false)) : dh.zero_();
  Tensor dstates = dy.has(0) ? dy[0] : Tensor();
  if (dstates.defined() && dstates.stride(2) != 1) dstates = dstates.contiguous();
  std::vector<Side<T>> sides;
  for (std::int64_t d = 0; d < s.directions; ++d) {
    const Kept& k = kept[static_cast<std::size_t>(d)];
    Side<T> side = make_side<T>(d, s, k.before(), k.gates, k.q);
    side.product = packed<T>(k.hh().t());
    side.space = detail::raw<T>(dh) + d * s.batch * s.hidden;
    if (dstates.defined()) {
      side.states = detail::raw<T>(dstates) + d * s.hidden;
      side.by_step = dstates.stride(0);
      side.by_sequence = dstates.stride(1);
    }
    sides.push_back(std::move(side));
  }
  run_sides(rows, sides, [&](const Side<T>& side, std::int64_t begin, std::int64_t end) {
    backward_share(rows, side, wants_h0, begin, end);
  });
  return dh;
}

/// The gradient of x, from the gradients of the input products: those of r and z stand in gates, that of n in
/// q.
void input_gradient(const SequenceRows& rows, const Sizes& s, const std::vector<Kept>& kept,
                    const Slot& slot) {
  rows.write(slot, [&](Slot to) {
    for (const Kept& k : kept) {
      const Tensor ih = k.ih();
      matmul_into(to, k.gates.narrow(1, 0, 2 * s.hidden), ih.narrow(1, 0, 2 * s.hidden).t());
      to.beta = 1;
      matmul_into(to, k.q, ih.narrow(1, 2 * s.hidden, s.hidden).t());
    }
  });
}

/// The gradients of one direction's weights and biases, inputs `at` … `at` + 3 of the op.
void weight_gradients(const Sizes& s, const Kept& k, const Tensor& x, int at, Grads& d) {
  const std::int64_t two = 2 * s.hidden;
  if (auto dw = d[at]) {
    const Slot slot = dw.slot();
    matmul_into({slot.to.narrow(1, 0, two), slot.beta}, x.t(), k.gates.narrow(1, 0, two));
    matmul_into({slot.to.narrow(1, two, s.hidden), slot.beta}, x.t(), k.q);
  }
  if (auto dw = d[at + 1]) matmul_into(dw.slot(), k.before().t(), k.gates);
  if (auto db = d[at + 2]) {
    const Slot slot = db.slot();
    sum_rows_into({slot.to.narrow(0, 0, two), slot.beta}, k.gates.narrow(1, 0, two));
    sum_rows_into({slot.to.narrow(0, two, s.hidden), slot.beta}, k.q);
  }
  if (auto db = d[at + 3]) sum_rows_into(db.slot(), k.gates);
}

void backward(const SequenceRows& rows, const Sizes& s, const Tensor& x, std::vector<Kept> kept, Outputs dy,
              Grads& d) {
  const FlushDenormals flush;
  if (d.keeps_graph()) {
    for (Kept& k : kept) {
      k.gates = k.gates.clone();
      k.q = k.q.clone();
    }
  }
  const bool wants_h0 = static_cast<bool>(d[1]);
  const Tensor dh = visit_floating(
      "gru", x.dtype(), [&]<class T>(Type<T>) { return backward_steps<T>(rows, s, kept, dy, wants_h0); });
  if (auto dx = d[0]) input_gradient(rows, s, kept, dx.slot());
  if (auto dh0 = d[1]) dh0.give(reordered(rows, dh, true));
  for (std::size_t i = 0; i < kept.size(); ++i)
    weight_gradients(s, kept[i], x, 2 + 4 * static_cast<int>(i), d);
}

}  // namespace

SequenceOutput gru_sequence(const Tensor& x, std::span<const GruWeights> directions,
                            const SequenceInputs& given) {
  const Sizes s = check_all(x, directions, given.h0);
  SequenceRows rows("gru", s.steps, s.batch, given.lengths);
  States made;
  std::vector<Kept> kept;
  Tensor inputs;
  {
    const NoGrad no_grad;
    inputs = rows.gather(x);
    const Tensor h0 = given.h0.defined() ? given.h0.contiguous() : Tensor();
    made = make_states(rows, s, x.dtype());
    kept = visit_floating("gru", x.dtype(), [&]<class T>(Type<T>) {
      return forward<T>(rows, s, inputs, directions, h0, made);
    });
  }
  std::vector<TensorRef> from{x, given.h0};
  for (const GruWeights& w : directions) from.insert(from.end(), {w.ih, w.hh, w.bias_ih, w.bias_hh});
  auto [output, h_n] = record("gru", std::array{made.output, made.h_n}, from,
                              [rows = std::move(rows), s, x = save(inputs, "gru"), kept = std::move(kept)](
                                  Outputs dy, Grads& d) { backward(rows, s, x(), kept, dy, d); });
  return {.output = output, .h_n = h_n};
}

}  // namespace rill::nn
