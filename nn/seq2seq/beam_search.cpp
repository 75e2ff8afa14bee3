#include <rill/nn/seq2seq/beam_search.h>

#include <algorithm>
#include <cmath>

#include <rill/core/ops.h>

namespace rill::nn::detail {

Tensor select_tensor_rows(const Tensor& tensor, const Tensor& index) {
  return tensor.defined() ? index_select(tensor, std::max(0, tensor.dim() - 2), index) : tensor;
}

std::int64_t tensor_rows(const Tensor& tensor) {
  if (!tensor.defined()) return -1;
  check(tensor.dim() > 0, "beam_search: the state is a scalar; it must have a row per source, as in [B, H]");
  return tensor.size(std::max(0, tensor.dim() - 2));
}

std::int64_t common_rows(const std::vector<std::int64_t>& counts) {
  std::int64_t rows = -1;
  for (const std::int64_t count : counts) {
    if (count < 0) continue;
    check(rows < 0 || rows == count,
          "beam_search: tensors of the state have {} and {} rows; dimension -2 is the batch, as in [B, H]",
          rows, count);
    rows = count;
  }
  return rows;
}

/// The most probable tokens of each row, most probable first.
struct Beams::Best {
  Tensor log_probs;  // float64 [N, K]
  Tensor ids;        // int64 [N, K]
};

Beams::Beams(BeamSearchOptions options, std::int64_t sources, const Tensor& lengths)
    : options_(std::move(options)) {
  check(options_.beam >= 1, "beam_search: a beam of {}; it must be at least 1", options_.beam);
  check(std::isfinite(options_.length_penalty), "beam_search: the length penalty {} is not finite",
        options_.length_penalty);
  check(options_.max_steps >= 0, "beam_search: max_steps {} must not be negative", options_.max_steps);
  check(sources >= 0, "beam_search: the state has no defined tensor");
  check(options_.max_steps > 0 || lengths.defined(),
        "beam_search: max_steps is 0 and there are no source lengths; set max_steps");
  std::vector<std::int64_t>& banned = options_.banned;
  std::sort(banned.begin(), banned.end());
  banned.erase(std::unique(banned.begin(), banned.end()), banned.end());
  limits_.assign(static_cast<std::size_t>(sources), options_.max_steps);
  if (lengths.defined()) {
    check(lengths.dim() == 1 && lengths.size(0) == sources,
          "beam_search: lengths of shape {} for {} sources; pass [{}]", lengths.shape(), sources, sources);
  }
  if (options_.max_steps == 0) {
    limits_.clear();
    for (const std::int64_t length : lengths.to_vector<std::int64_t>()) limits_.push_back(2 * length + 5);
  }
  for (std::int64_t b = 0; b < sources; ++b) beams_.push_back({Path{.row = b}});
  live_.assign(static_cast<std::size_t>(sources), options_.start);
}

Tensor Beams::tokens() const { return tensor(live_, {std::ssize(live_)}); }

Tensor Beams::extend(const Tensor& log_probs, const Tensor& weights) {
  check(log_probs.defined() && log_probs.dim() == 2 && log_probs.size(0) == std::ssize(live_),
        "beam_search: the step returned log-probabilities {}; they must be [{}, vocabulary]",
        log_probs.defined() ? log_probs.shape() : Shape{}, live_.size());
  const std::int64_t vocabulary = log_probs.size(1);
  check(options_.end >= 0 && options_.end < vocabulary, "beam_search: token {} is outside 0..{}",
        options_.end, vocabulary - 1);
  ++step_;
  if (options_.weights) {
    check(weights.defined() && weights.dim() == 2 && weights.size(0) == std::ssize(live_),
          "beam_search: the step returned weights {}; they must be [{}, positions]",
          weights.defined() ? weights.shape() : Shape{}, live_.size());
    weights_.push_back(weights);
  }
  const Best best = best_tokens(log_probs);
  for (std::size_t b = 0; b < beams_.size(); ++b) extend_source(b, best);
  return renumber_rows();
}

double Beams::score(double log_prob, std::int64_t length) const {
  return length == 0 ? log_prob : log_prob / std::pow(static_cast<double>(length), options_.length_penalty);
}

/// Enough candidates that at least `beam` of them are not banned, if possible.
Beams::Best Beams::best_tokens(const Tensor& log_probs) const {
  const std::int64_t banned = std::ssize(options_.banned);
  const std::int64_t most =  // min(beam + banned, V) without overflow
      std::min(options_.beam, log_probs.size(1) - banned) + banned;
  const ValuesAndIndices best = topk(log_probs, most);
  return {best.values.to(float64), best.indices};
}

/// The best continuations of a live path, at most `beam`; ties in order of their ids.
void Beams::add_candidates(const Path& path, const Best& best, std::vector<Candidate>& to) const {
  const std::int64_t width = best.ids.size(1);
  const double* const log_probs = best.log_probs.data<double>() + path.row * width;
  const std::int64_t* const ids = best.ids.data<std::int64_t>() + path.row * width;
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < width && found < options_.beam; ++i) {
    if (!std::isfinite(log_probs[i])) break;  // only -infinity follows; NaN comes first
    if (std::binary_search(options_.banned.begin(), options_.banned.end(), ids[i])) continue;
    const double log_prob = path.log_prob + log_probs[i];
    to.push_back({score(log_prob, path.length + 1), &path, ids[i], log_prob});
    ++found;
  }
  check(found > 0,
        "beam_search: no token has a score; the model's parameters are not finite or all tokens are banned");
}

/// Replaces the beam of a source by the best of its paths' continuations.
void Beams::extend_source(std::size_t source, const Best& best) {
  std::vector<Path>& beam = beams_[source];
  if (std::none_of(beam.begin(), beam.end(), [](const Path& path) { return path.live; })) return;
  std::vector<Candidate> candidates;
  for (const Path& path : beam) {
    if (path.live) {
      add_candidates(path, best, candidates);
    } else {
      candidates.push_back({score(path.log_prob, path.length), &path, -1, path.log_prob});
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  if (std::ssize(candidates) > options_.beam) candidates.resize(static_cast<std::size_t>(options_.beam));
  std::vector<Path> next;
  for (const Candidate& candidate : candidates) next.push_back(extended(candidate, limits_[source]));
  beam = std::move(next);
}

Beams::Path Beams::extended(const Candidate& candidate, std::int64_t limit) {
  const Path& path = *candidate.path;
  if (!path.live) return path;
  tokens_.push_back({.id = candidate.token, .parent = path.last, .step = step_, .row = path.row});
  const bool finished = candidate.token == options_.end;
  return {.last = std::ssize(tokens_) - 1,
          .log_prob = candidate.log_prob,
          .length = path.length + 1,
          .live = !finished && step_ < limit,
          .finished = finished,
          .row = path.row};
}

/// Assigns a row of the next step to each live path; returns the row of this step that each continues.
Tensor Beams::renumber_rows() {
  const std::size_t before = live_.size();
  std::vector<std::int64_t> origins;
  live_.clear();
  bool in_place = true;
  for (std::vector<Path>& beam : beams_) {
    for (Path& path : beam) {
      if (!path.live) continue;
      const std::int64_t row = std::ssize(origins);
      in_place = in_place && path.row == row;
      live_.push_back(tokens_[static_cast<std::size_t>(path.last)].id);
      origins.push_back(path.row);
      path.row = row;
    }
  }
  if (in_place && origins.size() == before) return {};
  return tensor(origins, {std::ssize(origins)});
}

std::vector<std::vector<Hypothesis>> Beams::hypotheses() const {
  std::vector<std::vector<Hypothesis>> found;
  for (const std::vector<Path>& beam : beams_) {
    found.emplace_back();
    for (const Path& path : beam) found.back().push_back(hypothesis(path));
  }
  return found;
}

Hypothesis Beams::hypothesis(const Path& path) const {
  Hypothesis h{
      .finished = path.finished, .log_prob = path.log_prob, .score = score(path.log_prob, path.length)};
  std::vector<Tensor> weights;
  for (std::int64_t at = path.last; at >= 0; at = tokens_[static_cast<std::size_t>(at)].parent) {
    const Token& token = tokens_[static_cast<std::size_t>(at)];
    if (at != path.last || !path.finished) h.tokens.push_back(token.id);
    if (options_.weights) {
      weights.push_back(weights_[static_cast<std::size_t>(token.step - 1)].select(0, token.row));
    }
  }
  std::reverse(h.tokens.begin(), h.tokens.end());
  std::reverse(weights.begin(), weights.end());
  if (!weights.empty()) h.weights = stack(weights);
  return h;
}

}  // namespace rill::nn::detail
