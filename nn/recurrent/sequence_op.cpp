#include <rill/nn/recurrent/sequence_op.h>

namespace rill::nn::detail {
namespace {

/// Which block of the gates is the candidate.
constexpr std::int64_t candidate_block = 2;

/// The candidate's columns of gates [rows, G].
Tensor candidate_of(const KeptSide& k) {
  const std::int64_t hidden = k.q.size(1);
  return k.gates.narrow(1, candidate_block * hidden, hidden);
}

}  // namespace

void check_weight(const char* op, const char* what, const Tensor& t, const Shape& shape, DType dtype) {
  if (!t.defined()) return;
  check(t.shape() == shape, "{}: the {} is {}; it needs {}", op, what, t.shape(), shape);
  check(t.dtype() == dtype, "{}: dtypes {} (input) and {} ({}) differ; use .to({})", op, name(dtype),
        name(t.dtype()), what, name(dtype));
}

SequenceSizes check_sequence(const char* op, std::int64_t gates, const Tensor& x,
                             std::span<const std::array<Tensor, 2>> weights, const Tensor& h0) {
  check(x.dim() == 3, "{}: the input is {}; it needs 3 dimensions, [T, B, I]", op, x.shape());
  check(is_floating(x.dtype()), "{}: the input is {}; use .to(float32)", op, name(x.dtype()));
  check(weights.size() == 1 || weights.size() == 2, "{}: {} directions; there are 1 or 2", op,
        weights.size());
  check(weights[0][1].dim() == 2, "{}: the hidden weight is {}; it needs [H, {}H]", op, weights[0][1].shape(),
        gates);
  const SequenceSizes s{.steps = x.size(0),
                        .batch = x.size(1),
                        .input = x.size(2),
                        .hidden = weights[0][1].size(0),
                        .directions = static_cast<std::int64_t>(weights.size())};
  for (const auto& [ih, hh] : weights) {
    const Shape input_side{s.input, gates * s.hidden}, hidden_side{s.hidden, gates * s.hidden};
    check(ih.shape() == input_side, "{}: the input weight is {}; an input of {} and {} hidden need {}", op,
          ih.shape(), x.shape(), s.hidden, input_side);
    check(hh.shape() == hidden_side, "{}: the hidden weight is {}; {} hidden need {}", op, hh.shape(),
          s.hidden, hidden_side);
    check_weight(op, "input weight", ih, input_side, x.dtype());
    check_weight(op, "hidden weight", hh, hidden_side, x.dtype());
  }
  if (!h0.defined()) return s;
  const Shape wanted{s.directions, s.batch, s.hidden};
  check(h0.shape() == wanted, "{}: h0 is {}; an input of {} with {} hidden needs {}", op, h0.shape(),
        x.shape(), s.hidden, wanted);
  check_weight(op, "h0", h0, wanted, x.dtype());
  return s;
}

Tensor packable(const Tensor& w) {
  const Tensor plain = w.detach();
  return plain.stride(0) == 1 || plain.stride(1) == 1 ? plain : plain.contiguous();
}

/// A full batch keeps its states once: the state before a row is the output one step away, so the output lies
/// between a block of first states for either direction. A ragged batch keeps them packed besides the output.
SequenceStates make_states(const SequenceRows& rows, const SequenceSizes& s, DType dtype) {
  const Shape shape{s.steps, s.batch, s.width()};
  SequenceStates made{.output = {}, .h_n = empty({s.directions, s.batch, s.hidden}, dtype), .before = {}};
  if (rows.ragged()) {
    made.output = empty(shape, dtype);
    for (std::int64_t d = 0; d < s.directions; ++d)
      made.before.push_back(empty({rows.count(), s.hidden}, dtype));
    return made;
  }
  const std::int64_t block = s.batch * s.width();
  const Ref<Storage> all = empty({s.steps + 2, s.batch, s.width()}, dtype).impl().storage;
  made.output = rill::detail::make_view(all, dtype, shape, contiguous_strides(shape), block);
  for (std::int64_t d = 0; d < s.directions; ++d) {
    const std::int64_t offset = d == 0 ? 0 : 2 * block + s.hidden;
    made.before.push_back(
        rill::detail::make_view(all, dtype, {rows.count(), s.hidden}, {s.width(), 1}, offset));
  }
  return made;
}

Tensor reordered(const SequenceRows& rows, const Tensor& from, bool back) {
  if (!rows.ragged()) return from.contiguous();
  Tensor to = empty(from.shape(), from.dtype());
  for (std::int64_t place = 0; place < rows.batch(); ++place) {
    const std::int64_t sequence = rows.sequence(place);
    to.select(1, back ? sequence : place).copy_(from.select(1, back ? place : sequence));
  }
  return to;
}

void input_bias_gradient(const KeptSide& k, const Slot& slot) {
  const std::int64_t hidden = k.q.size(1), gates = k.gates.size(1) / hidden;
  const std::int64_t before = candidate_block * hidden, after = before + hidden,
                     rest = gates * hidden - after;
  sum_rows_into({slot.to.narrow(0, 0, before), slot.beta}, k.gates.narrow(1, 0, before));
  sum_rows_into({slot.to.narrow(0, before, hidden), slot.beta}, k.q);
  if (rest > 0) sum_rows_into({slot.to.narrow(0, after, rest), slot.beta}, k.gates.narrow(1, after, rest));
}

void input_gradients(const SequenceRows& rows, std::span<const KeptSide> kept, const Tensor& x, Grads& d) {
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const KeptSide& k = kept[i];
    auto dih = d[weights_at(i)];
    if (dih || d[0]) candidate_of(k).copy_(k.q);
    if (dih) matmul_into(dih.slot(), x.t(), k.gates);
  }
  auto dx = d[0];
  if (!dx) return;
  rows.write(dx.slot(), [&](Slot to) {
    for (const KeptSide& k : kept) {
      matmul_into(to, k.gates, k.ih().t());
      to.beta = 1;
    }
  });
}

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

#define RILL_INSTANTIATE(T)                                                         \
  template void put_first_states<T>(const SequenceRows&, const Side<T>&, const T*); \
  template void take_last_states<T>(const SequenceRows&, const Side<T>&, const T*, T*);
RILL_INSTANTIATE(float)
RILL_INSTANTIATE(double)
#undef RILL_INSTANTIATE

}  // namespace rill::nn::detail
