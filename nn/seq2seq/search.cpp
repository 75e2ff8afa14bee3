#include <rill/nn/seq2seq/search.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <rill/core/autograd.h>
#include <rill/core/ops.h>

namespace rill::nn {
namespace {

/// A token of the tree of all sequences; -1 is no parent.
struct Token {
  std::int64_t id;
  std::int64_t parent;
  std::int64_t step, row;  // where the decoder's weights for it are
};

/// A place in a source's beam.
struct Place {
  std::int64_t last = -1;  // its last token in the tree
  double log_prob = 0;
  std::int64_t length = 0;
  bool done = false, finished = false;
  std::int64_t row = 0;  // of the decoder's batch, where not done
};

/// A place as it may be in the next step.
struct Candidate {
  double score;
  std::size_t from;  // place
  std::int64_t token;
  double log_prob;
};

class Search {
 public:
  Search(const AttentionDecoder& decoder, const Tensor& hidden, const Memory& memory,
         const SearchOptions& options, const Tensor& given)
      : decoder_(decoder),
        options_(options),
        banned_(options.banned.begin(), options.banned.end()),
        all_(memory),
        memory_(memory),
        hidden_(hidden) {
    check_options();
    const std::int64_t batch = memory.values.size(1);
    for (std::int64_t b = 0; b < batch; ++b) {
      beams_.push_back({Place{.row = b}});
      sources_.push_back(b);
    }
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(batch), memory.values.size(0));
    if (given.defined() || memory.lengths.defined()) {
      lengths = (given.defined() ? given : memory.lengths).to_vector<std::int64_t>();
      check(std::ssize(lengths) == batch, "search: {} lengths for {} sources", lengths.size(), batch);
    }
    for (const std::int64_t length : lengths) {
      limits_.push_back(options.max_steps > 0 ? options.max_steps : 2 * length + 5);
    }
  }

  void run() {
    std::vector<std::int64_t> tokens(sources_.size(), options_.start);
    for (std::int64_t step = 1; !tokens.empty(); ++step) {
      const DecoderStep out = decoder_.step(tensor(tokens, {std::ssize(tokens)}), hidden_, memory_);
      if (options_.weights) weights_.push_back(out.weights.squeeze(1));
      const ValuesAndIndices best = best_tokens(out.log_probs);
      for (std::size_t b = 0; b < beams_.size(); ++b) extend(b, step, best);
      tokens = gather_rows(out.hidden);
    }
  }

  std::vector<Hypothesis> result(std::size_t source) const {
    std::vector<Hypothesis> found;
    for (const Place& place : beams_[source]) {
      Hypothesis h{.finished = place.finished,
                   .log_prob = place.log_prob,
                   .score = score(place.log_prob, place.length)};
      std::vector<Tensor> looked;
      for (std::int64_t at = place.last; at >= 0; at = tree_[static_cast<std::size_t>(at)].parent) {
        const Token& token = tree_[static_cast<std::size_t>(at)];
        if (at != place.last || !place.finished) h.tokens.push_back(token.id);
        if (options_.weights)
          looked.push_back(weights_[static_cast<std::size_t>(token.step - 1)].select(0, token.row));
      }
      std::reverse(h.tokens.begin(), h.tokens.end());
      std::reverse(looked.begin(), looked.end());
      if (!looked.empty()) h.weights = stack(looked);
      found.push_back(std::move(h));
    }
    return found;
  }

 private:
  void check_options() const {
    const std::int64_t vocabulary = decoder_.options().vocabulary;
    check(options_.beam >= 1, "search: a beam of {}; it must be at least 1", options_.beam);
    check(std::isfinite(options_.length_penalty), "search: the length penalty {} is not a number",
          options_.length_penalty);
    check(options_.max_steps >= 0, "search: max_steps {} must not be negative", options_.max_steps);
    for (const std::int64_t token : {options_.start, options_.end}) {
      check(token >= 0 && token < vocabulary, "search: token {} is outside 0..{}", token, vocabulary - 1);
    }
  }

  double score(double log_prob, std::int64_t length) const {
    return length == 0 ? log_prob : log_prob / std::pow(static_cast<double>(length), options_.length_penalty);
  }

  /// The best tokens of each row, enough that `beam` of them are allowed where there are so many; float64.
  ValuesAndIndices best_tokens(const Tensor& log_probs) const {
    const std::int64_t banned = std::ssize(banned_);
    const std::int64_t most =  // min(beam + banned, V) without a sum that is too large
        std::min(options_.beam, log_probs.size(1) - banned) + banned;
    const ValuesAndIndices best = topk(log_probs, most);
    return {best.values.to(float64), best.indices};
  }

  /// The best continuations of a live place, at most `beam`; equal ones in the order of their ids.
  void continue_place(std::size_t from, const Place& place, const ValuesAndIndices& best,
                      std::vector<Candidate>& out) const {
    const std::int64_t width = best.values.size(1);
    const double* const log_probs = best.values.data<double>() + place.row * width;
    const std::int64_t* const ids = best.indices.data<std::int64_t>() + place.row * width;
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < width && found < options_.beam; ++i) {
      if (!std::isfinite(log_probs[i])) break;  // nothing but -infinity follows; NaN would come first
      if (banned_.contains(ids[i])) continue;
      const double log_prob = place.log_prob + log_probs[i];
      out.push_back({score(log_prob, place.length + 1), from, ids[i], log_prob});
      ++found;
    }
    check(found > 0,
          "search: no token has a score; the model's parameters are not finite or all tokens are banned");
  }

  /// One step of one source: its beam becomes the best of what its places can become.
  void extend(std::size_t source, std::int64_t step, const ValuesAndIndices& best) {
    std::vector<Place>& beam = beams_[source];
    if (std::all_of(beam.begin(), beam.end(), [](const Place& p) { return p.done; })) return;
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < beam.size(); ++i) {
      const Place& place = beam[i];
      if (place.done) {
        candidates.push_back({score(place.log_prob, place.length), i, -1, place.log_prob});
        continue;
      }
      continue_place(i, place, best, candidates);
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
    if (std::ssize(candidates) > options_.beam) candidates.resize(static_cast<std::size_t>(options_.beam));
    std::vector<Place> next;
    for (const Candidate& c : candidates) next.push_back(becomes(beam[c.from], c, step, limits_[source]));
    beam = std::move(next);
  }

  Place becomes(const Place& place, const Candidate& c, std::int64_t step, std::int64_t limit) {
    if (place.done) return place;
    tree_.push_back({.id = c.token, .parent = place.last, .step = step, .row = place.row});
    const bool finished = c.token == options_.end;
    return {.last = std::ssize(tree_) - 1,
            .log_prob = c.log_prob,
            .length = place.length + 1,
            .done = finished || step >= limit,
            .finished = finished,
            .row = place.row};
  }

  /// Makes the decoder's batch of the places that go on; returns their last tokens.
  std::vector<std::int64_t> gather_rows(const Tensor& hidden) {
    std::vector<std::int64_t> tokens, origins, sources;
    for (std::size_t b = 0; b < beams_.size(); ++b) {
      for (Place& place : beams_[b]) {
        if (place.done) continue;
        tokens.push_back(tree_[static_cast<std::size_t>(place.last)].id);
        origins.push_back(place.row);
        sources.push_back(static_cast<std::int64_t>(b));
        place.row = std::ssize(origins) - 1;
      }
    }
    const std::int64_t rows = std::ssize(origins);
    hidden_ = index_select(hidden, hidden.dim() - 2, tensor(origins, {rows}));
    if (sources != sources_) {
      sources_ = sources;
      memory_ = all_.rows(tensor(sources, {rows}));
    }
    return tokens;
  }

  const AttentionDecoder& decoder_;
  const SearchOptions& options_;
  const std::set<std::int64_t> banned_;
  const Memory& all_;
  Memory memory_;  // of the rows that go on
  Tensor hidden_;
  std::vector<std::int64_t> sources_;  // of each row
  std::vector<std::int64_t> limits_;   // most steps of each source
  std::vector<std::vector<Place>> beams_;
  std::vector<Token> tree_;
  std::vector<Tensor> weights_;
};

}  // namespace

std::vector<std::vector<Hypothesis>> search(const AttentionDecoder& decoder, const Tensor& hidden,
                                            const Memory& memory, const SearchOptions& options,
                                            const Tensor& lengths) {
  const NoGrad no_grad;
  Search run(decoder, hidden, memory, options, lengths);
  run.run();
  std::vector<std::vector<Hypothesis>> found;
  for (std::int64_t b = 0; b < memory.values.size(1); ++b)
    found.push_back(run.result(static_cast<std::size_t>(b)));
  return found;
}

}  // namespace rill::nn
