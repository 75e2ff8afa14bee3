#include <translator/data/pairs.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_set>
#include <utility>

#include <rill/core/error.h>
#include <translator/text/file_kind.h>

namespace translator {
namespace {

/// Lines with one fault: their count, and the first of them.
struct Fault {
  std::uint64_t lines = 0;
  std::uint64_t first = 0;

  void add(std::uint64_t number) {
    first = lines == 0 ? number : first;
    ++lines;
  }
};

enum SkipReason : std::size_t { blank, no_tab, empty_side, not_utf8, too_long, skip_reasons };

constexpr std::array<std::string_view, skip_reasons> skip_reason_texts = {
    "blank", "without a tab", "with an empty side", "not in UTF-8", "longer than the limit of bytes"};

std::string lines_of(std::uint64_t n) { return fmt::format("{} {}", n, n == 1 ? "line" : "lines"); }

/// Collects the pairs of lines, and notes about the lines skipped.
class Collector {
 public:
  Collector(std::string name, std::string path, const ReadOptions& options)
      : name_(std::move(name)), path_(std::move(path)), options_(options) {}

  /// A line of a tab-separated file.
  void add_line(const std::string& line, bool cut, std::uint64_t number) {
    const std::size_t tab = line.find('\t');
    const std::string_view text = line;
    tabs_ += tab != std::string::npos ? 1 : 0;
    commas_ += text.find(',') != std::string::npos ? 1 : 0;
    semicolons_ += text.find(';') != std::string::npos ? 1 : 0;
    ++lines_;
    if (tab == std::string::npos) {
      const bool empty = text.find_first_not_of(" \r") == std::string::npos;
      skip(empty ? blank : cut ? too_long : is_utf8(text) ? no_tab : not_utf8, number);
      return;
    }
    const std::size_t second = text.find('\t', tab + 1);
    const bool target_cut = cut && second == std::string::npos;
    add_sides(text.substr(0, tab), text.substr(tab + 1, second - tab - 1), target_cut, number);
  }

  /// A line of each of two parallel files.
  void add_sides(std::string_view source, std::string_view target, bool cut, std::uint64_t number) {
    if (cut) {
      return skip(too_long, number);
    }
    if (!is_utf8(source) || !is_utf8(target)) {
      return skip(not_utf8, number);
    }
    Pair pair{std::string(source), std::string(target), tokenize(source), tokenize(target)};
    if (pair.source.empty() || pair.target.empty()) {
      return skip(empty_side, number);
    }
    const std::size_t longest = std::max(pair.source.size(), pair.target.size());
    if (options_.max_length != 0 && longest > options_.max_length) {
      return long_pairs_.add(number);
    }
    if (number == 1) {
      note_header(pair);
    }
    note_kind(pair);
    rill::check(pairs_.size() < options_.max_pairs, "{}: more than {} pairs; use fewer, such as: head -n {}",
                name_, options_.max_pairs, options_.max_pairs);
    pairs_.push_back(std::move(pair));
  }

  void count_line() { ++lines_; }

  Pairs finish() && {
    refuse_other_encoding();
    refuse_none();
    note_skipped();
    if (long_pairs_.lines > 0) {
      const bool one = long_pairs_.lines == 1;
      note("dropped {} {} longer than {} tokens, {} line {}", long_pairs_.lines, one ? "pair" : "pairs",
           options_.max_length, one ? "in" : "the first in", long_pairs_.first);
    }
    if (repeated_ > 0) {
      note("{} of {} pairs repeat an earlier one; they are kept", repeated_, pairs_.size());
    }
    if (unspaced_ > 0) {
      note("{} of {} pairs are written without spaces between words: each of their letters is a token",
           unspaced_, pairs_.size());
    }
    return {std::move(pairs_), std::move(notes_)};
  }

 private:
  void skip(SkipReason why, std::uint64_t number) { faults_[why].add(number); }

  template <class... A>
  void note(fmt::format_string<A...> format, A&&... args) {
    notes_.push_back(name_ + ": " + fmt::format(format, std::forward<A>(args)...));
  }

  /// Counts repetitions and scripts without spaces.
  void note_kind(const Pair& pair) {
    std::size_t hash = 0;
    for (const Tokens* tokens : {&pair.source, &pair.target}) {
      for (const std::string& token : *tokens) {
        hash = (hash ^ std::hash<std::string>{}(token)) * 0x9E3779B97F4A7C15U + 1;
      }
      hash = hash * 31 + 7;
    }
    repeated_ += seen_.insert(hash).second ? 0 : 1;
    const auto unspaced = [](const Tokens& tokens) {
      return std::any_of(tokens.begin(), tokens.end(), is_unspaced);
    };
    unspaced_ += unspaced(pair.source) || unspaced(pair.target) ? 1 : 0;
  }

  void note_header(const Pair& pair) {
    static const std::unordered_set<std::string_view> names = {
        "source",      "target",  "src",      "tgt",    "trg",     "input",   "output", "sentence",
        "translation", "english", "french",   "german", "spanish", "italian", "dutch",  "portuguese",
        "russian",     "chinese", "japanese", "en",     "eng",     "fr",      "fra",    "fre",
        "de",          "deu",     "ger",      "es",     "spa",     "it",      "ita",    "nl",
        "nld",         "pt",      "por",      "ru",     "rus",     "zh",      "ja"};
    const bool header = pair.source.size() == 1 && pair.target.size() == 1 &&
                        names.contains(pair.source[0]) && names.contains(pair.target[0]);
    if (header) {
      note("line 1 looks like a header ({}, {}); it is kept as a pair: remove it with tail -n +2",
           pair.source[0], pair.target[0]);
    }
  }

  std::uint64_t skipped() const {
    std::uint64_t all = 0;
    for (const Fault& fault : faults_) {
      all += fault.lines;
    }
    return all;
  }

  /// "3 lines, the first is line 2: 2 without a tab, 1 with an empty side", or shorter for one reason.
  std::string describe_skipped() const {
    std::string list;
    std::uint64_t first = 0;
    std::size_t kinds = 0;
    for (std::size_t i = 0; i < skip_reasons; ++i) {
      if (faults_[i].lines > 0) {
        list += fmt::format("{}{} {}", kinds == 0 ? "" : ", ", faults_[i].lines, skip_reason_texts[i]);
        first = kinds == 0 ? faults_[i].first : std::min(first, faults_[i].first);
        ++kinds;
      }
    }
    if (kinds == 1) {
      list.replace(0, list.find(' '), lines_of(skipped()));
      return fmt::format("{}, the first is line {}", list, first);
    }
    return fmt::format("{}, the first is line {}: {}", lines_of(skipped()), first, list);
  }

  void note_skipped() {
    if (skipped() > 0) {
      note("skipped {}", describe_skipped());
    }
  }

  /// A few bad lines are skipped; many mean that the file has another encoding, and the valid lines are just
  /// those without accents.
  void refuse_other_encoding() const {
    const Fault& bad = faults_[not_utf8];
    rill::check(bad.lines <= 2 || 10 * bad.lines <= lines_,
                "{}: {} of {} are not in UTF-8, the first is line {}; convert it, such as: iconv -f "
                "WINDOWS-1252 -t UTF-8 "
                "{} > utf8.tsv",
                name_, bad.lines, lines_of(lines_), bad.first, shell_word(path_));
  }

  void refuse_none() const {
    if (!pairs_.empty()) {
      return;
    }
    rill::check(lines_ > 0, "{}: no sentence pairs: the file is empty", name_);
    const std::uint64_t separated = std::max(commas_, semicolons_);
    if (tabs_ == 0 && faults_[no_tab].lines > 0 && 2 * separated >= lines_) {
      const char separator = commas_ >= semicolons_ ? ',' : ';';
      rill::fail(
          "{}: no sentence pairs: no line holds a tab; it looks like CSV with '{}', convert it: python3 -c "
          "\"import "
          "csv, sys; [print(*row, sep=chr(9)) for row in csv.reader(sys.stdin, delimiter='{}')]\" < {} > "
          "pairs.tsv",
          name_, separator, separator, shell_word(path_));
    }
    if (long_pairs_.lines > 0) {
      rill::fail(
          "{}: no sentence pairs: {} pairs are longer than {} tokens, {} lines are skipped; raise the limit",
          name_, long_pairs_.lines, options_.max_length, skipped());
    }
    rill::fail("{}: no sentence pairs: {}", name_, describe_skipped());
  }

  std::string name_;
  std::string path_;
  ReadOptions options_;
  std::vector<Pair> pairs_;
  std::vector<std::string> notes_;
  std::unordered_set<std::size_t> seen_;
  std::array<Fault, skip_reasons> faults_;
  Fault long_pairs_;
  std::uint64_t lines_ = 0;
  std::uint64_t tabs_ = 0;
  std::uint64_t commas_ = 0;
  std::uint64_t semicolons_ = 0;
  std::uint64_t repeated_ = 0;
  std::uint64_t unspaced_ = 0;
};

}  // namespace

Pairs read_pairs(const std::string& path, const ReadOptions& options) {
  LineReader reader(path, options.lines);
  Collector collector(reader.name(), path, options);
  std::string line;
  while (reader.next(line)) {
    collector.add_line(line, reader.cut(), reader.number());
  }
  return std::move(collector).finish();
}

Pairs read_parallel(const std::string& source_path, const std::string& target_path,
                    const ReadOptions& options) {
  LineReader sources(source_path, options.lines);
  LineReader targets(target_path, options.lines);
  Collector collector(sources.name() + ", " + targets.name(), source_path, options);
  std::string source, target;
  for (;;) {
    const bool more_sources = sources.next(source);
    const bool more_targets = targets.next(target);
    if (!more_sources || !more_targets) {
      while (more_sources && sources.next(source)) {
      }
      while (more_targets && targets.next(target)) {
      }
      break;
    }
    collector.count_line();
    collector.add_sides(source, target, sources.cut() || targets.cut(), sources.number());
  }
  rill::check(sources.number() == targets.number(),
              "{} has {}, {} has {}; parallel files need the same number of lines", sources.name(),
              lines_of(sources.number()), targets.name(), lines_of(targets.number()));
  return std::move(collector).finish();
}

}  // namespace translator
