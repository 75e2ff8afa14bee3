#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <translator/data/hold_out.h>

using translator::hold_out;
using translator::Pair;
using translator::Split;

namespace {

Pair pair(const std::string& source, const std::string& target) {
  return {source, target, translator::tokenize(source), translator::tokenize(target)};
}

std::vector<Pair> distinct_pairs(int n) {
  std::vector<Pair> pairs;
  for (int i = 0; i < n; ++i) {
    pairs.push_back(pair("source " + std::to_string(i), "target " + std::to_string(i)));
  }
  return pairs;
}

void check_disjoint(const Split& split) {
  std::set<translator::Tokens> sources, targets;
  for (const Pair& p : split.train) {
    sources.insert(p.source);
    targets.insert(p.target);
  }
  for (const Pair& p : split.valid) {
    CHECK_FALSE(sources.contains(p.source));
    CHECK_FALSE(targets.contains(p.target));
  }
}

}  // namespace

TEST_CASE("hold out: a twentieth of the sources, at most a thousand, none of fewer than 20") {
  struct Row {
    int pairs;
    std::size_t valid;
  };
  for (const Row row :
       {Row{0, 0}, Row{1, 0}, Row{19, 0}, Row{20, 1}, Row{100, 5}, Row{1000, 50}, Row{30000, 1000}}) {
    rill::Rng rng(3);
    const Split split = hold_out(distinct_pairs(row.pairs), rng);
    CHECK(split.valid.size() == row.valid);
    CHECK(split.train.size() + split.valid.size() == static_cast<std::size_t>(row.pairs));
    check_disjoint(split);
  }
}

TEST_CASE("hold out: the note describes the split") {
  rill::Rng rng(3);
  CHECK(hold_out(distinct_pairs(1), rng).note == "1 pair, fewer than 20: none is held out for validation");
  CHECK(hold_out(distinct_pairs(20), rng).note ==
        "1 of 20 sources (1 pair) are held out for validation; none of their sources and targets is among "
        "the 19 "
        "training pairs");
  std::vector<Pair> same(50, pair("a", "b"));
  CHECK(hold_out(same, rng).note ==
        "the pairs hang together by common sources and targets: none is held out for validation");
  CHECK(hold_out(same, rng).train.size() == 50);
}

TEST_CASE("hold out: no source or target is in both parts, whatever the pairs have in common") {
  rill::Rng draws(5);
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    std::vector<Pair> pairs;
    for (int i = 0; i < 400; ++i) {
      pairs.push_back(pair("S " + std::to_string(draws.below(300)), "t " + std::to_string(draws.below(300))));
      // The same source after normalisation, but not the same bytes.
      pairs.push_back(pair("s\u00a0" + std::to_string(draws.below(300)) + " ", "u " + std::to_string(i)));
    }
    rill::Rng rng(seed);
    const Split split = hold_out(pairs, rng);
    CHECK(split.train.size() + split.valid.size() == pairs.size());
    CHECK(split.train.size() > pairs.size() / 2);
    check_disjoint(split);
  }
}

TEST_CASE("hold out: the order is kept and the choice depends only on the seed") {
  rill::Rng a(1), b(1), c(2);
  const auto texts = [](const std::vector<Pair>& pairs) {
    std::vector<int> numbers;
    for (const Pair& p : pairs) {
      numbers.push_back(std::stoi(p.source_text.substr(7)));
    }
    return numbers;
  };
  const Split first = hold_out(distinct_pairs(500), a);
  CHECK(texts(first.valid) == texts(hold_out(distinct_pairs(500), b).valid));
  CHECK(texts(first.valid) != texts(hold_out(distinct_pairs(500), c).valid));
  const auto train = texts(first.train), valid = texts(first.valid);
  CHECK(std::is_sorted(train.begin(), train.end()));
  CHECK(std::is_sorted(valid.begin(), valid.end()));
}

TEST_CASE("hold out: known sources are counted") {
  const std::vector<Pair> pairs = {pair("A b", "1"), pair("c", "2"), pair("a  b", "3")};
  CHECK(translator::count_known_sources(pairs, {pair("a b", "x"), pair("d", "y")}) == 2);
  CHECK(translator::count_known_sources(pairs, {}) == 0);
}
