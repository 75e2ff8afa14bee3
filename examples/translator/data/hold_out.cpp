#include <translator/data/hold_out.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace translator {
namespace {

/// Groups of pairs that share a source or a target, directly or through others; a group is not split.
class Groups {
 public:
  explicit Groups(const std::vector<Pair>& pairs) {
    std::unordered_map<std::string, std::size_t> sources, targets;
    for (const Pair& pair : pairs) {
      const std::size_t source = index_of(join(pair.source), sources);
      const std::size_t target = index_of(join(pair.target), targets);
      nodes_.push_back(source);
      unite(source, target);
    }
    sources_ = sources.size();
    count_sources(pairs.size());
  }

  std::size_t sources() const { return sources_; }
  std::size_t group_of(std::size_t pair) { return find(nodes_[pair]); }
  std::size_t sources_in(std::size_t group) const { return size_[group]; }

  /// The group of each distinct source.
  const std::vector<std::size_t>& group_of_source() const { return group_of_source_; }

 private:
  static std::string join(const Tokens& tokens) {
    std::string text;
    for (const std::string& token : tokens) {
      (text += token) += ' ';
    }
    return text;
  }

  std::size_t index_of(const std::string& text, std::unordered_map<std::string, std::size_t>& indices) {
    const auto [at, added] = indices.try_emplace(text, parent_.size());
    if (added) {
      parent_.push_back(parent_.size());
    }
    return at->second;
  }

  std::size_t find(std::size_t node) {
    while (parent_[node] != node) {
      node = parent_[node] = parent_[parent_[node]];
    }
    return node;
  }

  void unite(std::size_t a, std::size_t b) { parent_[find(a)] = find(b); }

  void count_sources(std::size_t pairs) {
    size_.resize(parent_.size());
    std::vector<bool> counted(parent_.size());
    for (std::size_t i = 0; i < pairs; ++i) {
      if (!counted[nodes_[i]]) {
        counted[nodes_[i]] = true;
        group_of_source_.push_back(group_of(i));
        ++size_[group_of_source_.back()];
      }
    }
  }

  std::vector<std::size_t> parent_;           // of each distinct source and target
  std::vector<std::size_t> nodes_;            // of each pair: its source
  std::vector<std::size_t> size_;             // distinct sources of a group
  std::vector<std::size_t> group_of_source_;  // in the order of first occurrence
  std::size_t sources_ = 0;
};

std::string counted(std::size_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

/// Random groups with `wanted` sources in total, or a few less.
std::unordered_set<std::size_t> choose(const Groups& groups, std::size_t wanted, rill::Rng& rng) {
  std::vector<std::size_t> order = groups.group_of_source();
  rng.shuffle(order);
  std::unordered_set<std::size_t> chosen;
  for (const std::size_t group : order) {
    if (groups.sources_in(group) <= wanted && chosen.insert(group).second) {
      wanted -= groups.sources_in(group);
    }
  }
  return chosen;
}

}  // namespace

Split hold_out(std::vector<Pair> pairs, rill::Rng& rng, const HoldOutOptions& options) {
  Split split;
  if (pairs.size() < options.min_pairs) {
    split.note = fmt::format("{}, fewer than {}: none is held out for validation",
                             counted(pairs.size(), "pair"), options.min_pairs);
    split.train = std::move(pairs);
    return split;
  }
  Groups groups(pairs);
  const auto wanted_sources =
      static_cast<std::size_t>(std::lround(options.fraction * static_cast<double>(groups.sources())));
  const std::size_t wanted = std::min(std::max<std::size_t>(wanted_sources, 1), options.most);
  const std::unordered_set<std::size_t> chosen = choose(groups, groups.sources() > 1 ? wanted : 0, rng);
  std::size_t sources = 0;
  for (const std::size_t group : chosen) {
    sources += groups.sources_in(group);
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    (chosen.contains(groups.group_of(i)) ? split.valid : split.train).push_back(std::move(pairs[i]));
  }
  split.note =
      chosen.empty()
          ? "the pairs hang together by common sources and targets: none is held out for validation"
          : fmt::format(
                "{} of {} sources ({}) are held out for validation; none of their sources and targets "
                "is among the {} training pairs",
                sources, groups.sources(), counted(split.valid.size(), "pair"), split.train.size());
  return split;
}

std::size_t count_known_sources(const std::vector<Pair>& pairs, const std::vector<Pair>& others) {
  const auto hash = [](const Tokens* tokens) {
    std::size_t value = 0;
    for (const std::string& token : *tokens) {
      value = value * 1000003 ^ std::hash<std::string>{}(token);
    }
    return value;
  };
  const auto equal = [](const Tokens* a, const Tokens* b) { return *a == *b; };
  std::unordered_set<const Tokens*, decltype(hash), decltype(equal)> known(others.size(), hash, equal);
  for (const Pair& pair : others) {
    known.insert(&pair.source);
  }
  return static_cast<std::size_t>(std::count_if(
      pairs.begin(), pairs.end(), [&](const Pair& pair) { return known.contains(&pair.source); }));
}

}  // namespace translator
