/// Sentence pairs from files.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <translator/text/line_reader.h>
#include <translator/text/tokenizer.h>

namespace translator {

/// A sentence and its translation: the raw text and its tokens.
struct Pair {
  std::string source_text;
  std::string target_text;
  Tokens source;
  Tokens target;
};

/// The pairs read, and notes for the user, one sentence each, ready to print.
struct Pairs {
  std::vector<Pair> pairs;
  std::vector<std::string> notes;
};

struct ReadOptions {
  std::size_t max_length = 0;  ///< pairs with more tokens on either side are dropped and counted; 0: no limit
  std::size_t max_pairs = 2'000'000;  ///< more is an error: they would not fit in memory
  LineLimits lines = {};
};

/// The pairs in columns 1 and 2 of a tab-separated file, in the order of the file; further columns are
/// ignored.
///
/// Lines without a tab, with an empty side, not in UTF-8 or longer than the limit are skipped; one note gives
/// their count, the first line number and the reasons. Duplicates are kept and noted. Throws rill::Error like
/// LineReader, for a file without any pair ("no sentence pairs", suggesting CSV if it looks like that), and
/// for a file that is mostly in another encoding.
Pairs read_pairs(const std::string& path, const ReadOptions& options = {});

/// The pairs of two parallel files: line n of one corresponds to line n of the other.
///
/// Like read_pairs(), except that a tab is a space. Throws rill::Error naming both line counts if they
/// differ.
Pairs read_parallel(const std::string& source_path, const std::string& target_path,
                    const ReadOptions& options = {});

}  // namespace translator
