/// Replaying a whole set, and saying what failed.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>

namespace rill::parity {

struct RunOptions {
  std::string filter;    ///< only cases whose id contains it
  bool float32 = false;  ///< replay in float32 with the looser bounds for it
};

struct Counts {
  int passed = 0;
  int failed = 0;
  int skipped = 0;
};

/// Replays the cases of the set in `directory` and writes one line for each thing that is wrong, and the
/// counts, to `out`. Only an optional case may be skipped: one that needs what rill does not offer. Throws
/// Error for a directory without a valid index and for a filter that no case matches.
Counts run(const std::filesystem::path& directory, const RunOptions& options, std::ostream& out);

}  // namespace rill::parity
