/// The steps of a sequence op on raw rows: one direction, one chunk of the batch. Internal to sequence_op.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <rill/nn/recurrent/sequence_rows.h>
#include <rill/nn/recurrent/step.h>

namespace rill::nn::detail {

/// One of a unit's states over all steps of one direction.
template <class T>
struct StateRows {
  T* previous = nullptr;  ///< [rows, H], the state before each row, `ld` elements apart
  std::int64_t ld = 0;
  T* next = nullptr;  ///< [T, B, H], the state after each step; backward, its gradient, which may be absent
  std::int64_t by_step = 0, by_sequence = 0;

  StateRows() = default;
  StateRows(const Tensor& before, const Tensor& after)
      : previous(rill::detail::raw<T>(before)), ld(before.stride(0)), next(raw_or_null<T>(after)) {
    if (!next) return;
    by_step = after.stride(0);
    by_sequence = after.stride(1);
  }

  T* next_of(std::int64_t t, std::int64_t batch_index) const noexcept {
    return next + t * by_step + batch_index * by_sequence;
  }
  kernels::RowView<T> next_rows(const SequenceRows& rows, std::int64_t t, std::int64_t begin) const noexcept {
    if (!next) return {};
    if (const std::int64_t* order = rows.order()) return {next_of(t, 0), by_sequence, order + begin};
    return {next_of(t, begin), by_sequence};
  }
  kernels::RowView<const T> previous_rows(std::int64_t row) const noexcept {
    return {previous + row * ld, ld};
  }
};

/// One direction as its steps see it.
template <class T>
struct Direction {
  bool reverse = false;
  std::int64_t hidden = 0, width = 0;       ///< H, G
  std::array<StateRows<T>, 2> states = {};  ///< h, and c of units that have it
  const T* bias = nullptr;
  T* gates = nullptr;                ///< [rows, G]
  T* q = nullptr;                    ///< [rows, H], as the next
  T* candidate = nullptr;            ///< backward, with an inner product
  T* products = nullptr;             ///< forward, [B, G]
  std::array<T*, 2> gradients = {};  ///< backward, of the states, [B, H] by position

  /// Row `row` of an array with H columns; null where the array is.
  template <class U>
  U* row_of(U* array, std::int64_t row) const noexcept {
    return array ? array + row * hidden : nullptr;
  }
  /// The step a sequence begins or ends with.
  std::int64_t start(std::int64_t length) const noexcept { return reverse ? length - 1 : 0; }
  std::int64_t end(std::int64_t length) const noexcept { return reverse ? 0 : length - 1; }
};

template <class T>
void copy_or_zero(const T* from, std::int64_t n, T* to) noexcept {
  from ? std::copy_n(from, n, to) : std::fill_n(to, n, T(0));
}

/// Puts the initial states [B, H], null for zeros, where the first step of each sequence reads them.
template <class T>
void put_initial_states(const SequenceRows& rows, const Direction<T>& d, const StateRows<T>& s,
                        const T* initial) {
  for (std::int64_t position = 0; position < rows.batch() && rows.length(position) > 0; ++position) {
    const std::int64_t row = rows.first(d.start(rows.length(position))) + position;
    copy_or_zero(d.row_of(initial, rows.batch_index(position)), d.hidden, s.previous + row * s.ld);
  }
}

/// Copies each sequence's last state to last [B, H]; the initial one where there is no step.
template <class T>
void take_last_states(const SequenceRows& rows, const Direction<T>& d, const StateRows<T>& s,
                      const T* initial, T* last) {
  for (std::int64_t position = 0; position < rows.batch(); ++position) {
    const std::int64_t index = rows.batch_index(position), length = rows.length(position);
    const T* from = length > 0 ? s.next_of(d.end(length), index) : d.row_of(initial, index);
    if (T* to = last + index * d.hidden; from != to) copy_or_zero(from, d.hidden, to);
  }
}

/// Copies the new states of step t in a ragged batch to where the next step reads them.
template <class T>
void pass_on(const SequenceRows& rows, const Direction<T>& d, const StateRows<T>& s, std::int64_t t,
             std::int64_t begin, std::int64_t end) {
  const std::int64_t next = d.reverse ? t - 1 : t + 1;
  if (!rows.ragged() || !s.previous || next < 0 || next >= rows.steps()) return;
  for (std::int64_t position = begin; position < end && next < rows.length(position); ++position) {
    std::copy_n(s.next_of(t, rows.batch_index(position)), d.hidden,
                s.previous + (rows.first(next) + position) * s.ld);
  }
}

/// All steps of the positions begin … end - 1.
template <class T>
void forward_chunk(const SequenceRows& rows, const Direction<T>& d, const Step<T>& step, std::int64_t begin,
                   std::int64_t end) {
  const auto& [h, c] = d.states;
  for (std::int64_t i = 0; i < rows.steps(); ++i) {
    const std::int64_t t = d.reverse ? rows.steps() - 1 - i : i;
    const std::int64_t last = std::min(end, rows.active(t));
    for (std::int64_t position = std::max(begin, last); position < end; ++position) {
      std::fill_n(h.next_of(t, rows.batch_index(position)), d.hidden, T(0));
    }
    if (begin >= last) continue;
    const std::int64_t row = rows.first(t) + begin;
    step.forward({.count = last - begin,
                  .hidden = d.hidden,
                  .h = h.previous_rows(row),
                  .c = c.previous_rows(row),
                  .bias = d.bias,
                  .products = d.products + begin * d.width,
                  .gates = d.gates + row * d.width,
                  .q = d.row_of(d.q, row),
                  .next_h = h.next_rows(rows, t, begin),
                  .next_c = c.next_rows(rows, t, begin)});
    for (const StateRows<T>& state : d.states) pass_on(rows, d, state, t, begin, last);
  }
}

/// The same in the opposite order: gates and q become their gradients, those of the states become those of
/// the initial states.
template <class T>
void backward_chunk(const SequenceRows& rows, const Direction<T>& d, const Step<T>& step, bool wants_initial,
                    std::int64_t begin, std::int64_t end) {
  const auto& [h, c] = d.states;
  for (std::int64_t i = rows.steps() - 1; i >= 0; --i) {
    const std::int64_t t = d.reverse ? rows.steps() - 1 - i : i;
    const std::int64_t last = std::min(end, rows.active(t));
    if (begin >= last) continue;
    const std::int64_t row = rows.first(t) + begin;
    step.backward({.count = last - begin,
                   .hidden = d.hidden,
                   .h = h.previous_rows(row),
                   .c = c.previous_rows(row),
                   .dy = h.next_rows(rows, t, begin),
                   .gates = d.gates + row * d.width,
                   .q = d.row_of(d.q, row),
                   .candidate = d.row_of(d.candidate, row),
                   .dh = d.row_of(d.gradients[0], begin),
                   .dc = d.row_of(d.gradients[1], begin)},
                  i > 0 || wants_initial);
  }
}

}  // namespace rill::nn::detail
