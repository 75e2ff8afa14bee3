/// Beam search over any model that predicts one token at a time.
///
/// A step takes the previous tokens, int64 [N], and a state of N rows; it returns log-probabilities [N, V] of
/// the next token and the next state. Between steps the search selects rows of the state, so that each row
/// continues its hypothesis. With a custom decoder, here an Elman network:
///
///   const auto step = [&](const Tensor& tokens, const Tensor& h) {  // h [N, H]
///     const Tensor next = tanh(embedding(embeddings, tokens) + matmul(h, recurrent));
///     return nn::BeamStep{log_softmax(matmul(next, output), -1), next};
///   };
///   const nn::BeamSearchOptions options{.beam = 3, .start = 0, .end = 1, .banned = {0}, .max_steps = 4};
///   for (const auto& hypotheses : nn::beam_search(step, initial_state, options)) {  // per source
///     const nn::Hypothesis& best = hypotheses.front();
///     fmt::print("{} with log-probability {}\n", best.tokens, best.log_prob);
///   }
///
/// A state is a Tensor; a pair, tuple, array or vector of states, such as the (h, c) of an LSTM; or any type
/// with `std::int64_t batch() const`, its number of rows, and `rows(index) const`, a state of the rows
/// `index`, an int64 tensor [N] that may contain duplicates.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <rill/core/autograd.h>
#include <rill/core/tensor.h>
#include <rill/nn/attention/attention.h>

#pragma GCC visibility push(default)

namespace rill::nn {

/// Options of beam_search.
struct BeamSearchOptions {
  std::int64_t beam = 1;                      ///< hypotheses per source; 1 is greedy decoding
  double length_penalty = 1;                  ///< α of the score log p / length^α that ranks hypotheses
  std::int64_t start = 1;                     ///< first input token
  std::int64_t end = 2;                       ///< token that ends a hypothesis
  std::vector<std::int64_t> banned = {0, 1};  ///< tokens never emitted: padding and start
  std::int64_t max_steps = 0;                 ///< maximum length including `end`; 0: 2 · source length + 5
  bool weights = false;                       ///< keep the attention weights
};

/// A token sequence found by a search.
struct Hypothesis {
  std::vector<std::int64_t> tokens = {};  ///< without start and end
  bool finished = false;                  ///< whether it ended within max_steps
  double log_prob = 0;                    ///< log p, including the end
  double score = 0;                       ///< log p / length^α, where length includes the end
  Tensor weights = {};                    ///< [tokens (+ end), S], if requested
};

/// The result of one step of N rows.
template <class State>
struct BeamStep {
  Tensor log_probs;     ///< [N, V]
  State state;          ///< after reading the tokens
  Tensor weights = {};  ///< attention weights [N, S]; needed only for `BeamSearchOptions::weights`
};
/// Deduces the type in `BeamStep{log_probs, state}`.
template <class State>
BeamStep(Tensor, State, Tensor = {}) -> BeamStep<State>;

/// Rows `index` of a state. Those of a tensor lie along its dimension -2 ([B, H], [L, B, H], [S, B, M]) or,
/// if it has only one, along that; an undefined tensor stays undefined.
template <class State>
State select_rows(const State& state, const Tensor& index);
/// The number of rows of a state; throws "beam_search: …" unless all its tensors agree.
template <class State>
std::int64_t row_count(const State& state);

/// The state of a decoder and the memory it attends to, combined into one search state. All hypotheses of a
/// source attend to the same memory, so its rows are reselected only after a source has finished.
template <class State>
class AttendingState {
 public:
  /// One row for each source of the memory.
  AttendingState(State state, Memory memory);
  /// The same memory with the state of the next step.
  AttendingState with(State state) const;

  // --- rows in their present order
  const State& state() const noexcept { return state_; }
  const Memory& memory() const noexcept { return memory_; }
  std::int64_t batch() const { return std::ssize(sources_); }
  /// Rows `index`, with the memory of their sources.
  AttendingState rows(const Tensor& index) const;

 private:
  State state_;
  Memory all_;                         // of all sources
  Memory memory_;                      // of each row's source
  std::vector<std::int64_t> sources_;  // source of each row
};

namespace detail {

Tensor select_tensor_rows(const Tensor& tensor, const Tensor& index);
/// The number of rows; -1 for an undefined tensor, which matches any number.
std::int64_t tensor_rows(const Tensor& tensor);
std::int64_t common_rows(const std::vector<std::int64_t>& counts);

/// The hypotheses of a running search. Each live hypothesis has a row of the state.
class Beams {
 public:
  Beams(BeamSearchOptions options, std::int64_t sources, const Tensor& lengths);

  bool done() const noexcept { return live_.empty(); }
  /// The last token of each live hypothesis, [N].
  Tensor tokens() const;
  /// Extends the live hypotheses by one token, given log-probabilities [N, V] and weights [N, S] or
  /// undefined. Returns the previous row of each hypothesis that is live afterwards, or an undefined tensor
  /// if the rows are unchanged.
  Tensor extend(const Tensor& log_probs, const Tensor& weights);
  /// The hypotheses of each source, best score first.
  std::vector<std::vector<Hypothesis>> hypotheses() const;

 private:
  /// A token of a hypothesis. Hypotheses share prefixes, so tokens form a tree; parent -1: none.
  struct Token {
    std::int64_t id, parent;
    std::int64_t step, row;  // of its attention weights
  };
  /// A hypothesis: the path to its last token.
  struct Path {
    std::int64_t last = -1;  // index into tokens_
    double log_prob = 0;
    std::int64_t length = 0;
    bool live = true, finished = false;
    std::int64_t row = 0;  // of the state, if live
  };
  /// A candidate path for the next step; a finished path is unchanged.
  struct Candidate {
    double score;
    const Path* path;
    std::int64_t token;
    double log_prob;
  };
  struct Best;

  double score(double log_prob, std::int64_t length) const;
  Best best_tokens(const Tensor& log_probs) const;
  void add_candidates(const Path& path, const Best& best, std::vector<Candidate>& to) const;
  void extend_source(std::size_t source, const Best& best);
  Path extended(const Candidate& candidate, std::int64_t limit);
  Tensor renumber_rows();
  Hypothesis hypothesis(const Path& path) const;

  BeamSearchOptions options_;
  std::int64_t step_ = 0;                 // number of the running step, from 1
  std::vector<std::int64_t> limits_;      // most steps of each source
  std::vector<std::vector<Path>> beams_;  // of each source
  std::vector<std::int64_t> live_;        // last token of each row
  std::vector<Token> tokens_;
  std::vector<Tensor> weights_;  // of each step
};

}  // namespace detail

/// Up to `beam` hypotheses for each of the state's B rows, best score first. A finished hypothesis stays in
/// the beam until better ones displace it, and is not extended further. A source has the same result alone as
/// in a batch, up to rounding. A hypothesis that has not ended after `max_steps` tokens is returned
/// unfinished. The source lengths `lengths` [B] are needed only if `max_steps` is 0.
///
/// Nothing is recorded for gradients. Call eval() on the model first to turn dropout off. Throws
/// "beam_search: …" for a beam below 1, no limit on the steps, an end token outside the vocabulary, and rows
/// without a finite log-probability.
template <class State, class Step>
std::vector<std::vector<Hypothesis>> beam_search(Step&& step, State state,
                                                 const BeamSearchOptions& options = {},
                                                 const Tensor& lengths = Tensor()) {
  const NoGrad no_grad;
  detail::Beams beams(options, row_count(state), lengths);
  while (!beams.done()) {
    BeamStep<State> next = step(beams.tokens(), std::as_const(state));
    const Tensor rows = beams.extend(next.log_probs, next.weights);
    if (beams.done()) break;
    state = rows.defined() ? select_rows(next.state, rows) : std::move(next.state);
  }
  return beams.hypotheses();
}

// --- definitions

template <class State>
State select_rows(const State& state, const Tensor& index) {
  if constexpr (std::is_same_v<State, Tensor>) {
    return detail::select_tensor_rows(state, index);
  } else if constexpr (requires { state.rows(index); }) {
    return state.rows(index);
  } else if constexpr (requires { std::tuple_size<State>::value; }) {
    return std::apply([&](const auto&... part) { return State{select_rows(part, index)...}; }, state);
  } else {
    State selected;
    for (const auto& part : state) selected.push_back(select_rows(part, index));
    return selected;
  }
}

template <class State>
std::int64_t row_count(const State& state) {
  if constexpr (std::is_same_v<State, Tensor>) {
    return detail::tensor_rows(state);
  } else if constexpr (requires { state.batch(); }) {
    return state.batch();
  } else if constexpr (requires { std::tuple_size<State>::value; }) {
    return std::apply([](const auto&... part) { return detail::common_rows({row_count(part)...}); }, state);
  } else {
    std::vector<std::int64_t> counts;
    for (const auto& part : state) counts.push_back(row_count(part));
    return detail::common_rows(counts);
  }
}

template <class State>
AttendingState<State>::AttendingState(State state, Memory memory)
    : state_(std::move(state)), all_(memory), memory_(std::move(memory)) {
  detail::common_rows({row_count(state_), memory_.batch()});
  for (std::int64_t b = 0; b < memory_.batch(); ++b) sources_.push_back(b);
}

template <class State>
AttendingState<State> AttendingState<State>::with(State state) const {
  AttendingState next = *this;
  next.state_ = std::move(state);
  return next;
}

template <class State>
AttendingState<State> AttendingState<State>::rows(const Tensor& index) const {
  AttendingState selected = with(select_rows(state_, index));
  std::vector<std::int64_t> sources;
  for (const std::int64_t row : index.to_vector<std::int64_t>()) {
    sources.push_back(sources_[static_cast<std::size_t>(row)]);
  }
  if (sources == sources_) return selected;
  selected.memory_ = all_.rows(tensor(sources, {std::ssize(sources)}));
  selected.sources_ = std::move(sources);
  return selected;
}

}  // namespace rill::nn

#pragma GCC visibility pop
