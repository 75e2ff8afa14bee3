#include <parity/run.h>

#include <exception>
#include <vector>

#include <parity/compare.h>
#include <parity/reference_set.h>
#include <parity/replay.h>

namespace rill::parity {
namespace {

bool has_results(const Case& c) { return !c.names("out").empty() || !c.names("grad").empty(); }

/// The faults of a case, one text each.
std::vector<std::string> failures(const ReferenceSet& set, const Case& c, DType dtype) {
  try {
    if (!has_results(c)) return {"the index names no result to compare"};
    return compare(set, c, replay(set, c, dtype), dtype);
  } catch (const Unsupported&) {
    throw;
  } catch (const std::exception& e) {
    return {e.what()};
  }
}

}  // namespace

Counts run(const std::filesystem::path& directory, const RunOptions& options, std::ostream& out) {
  const ReferenceSet set(directory);
  Counts counts;
  for (const Case& c : set.cases()) {
    if (c.id.find(options.filter) == std::string::npos) continue;
    std::vector<std::string> wrong;
    try {
      wrong = failures(set, c, options.float32 ? float32 : float64);
    } catch (const Unsupported& e) {
      if (c.optional) {
        ++counts.skipped;
        out << "skipped " << c.id << ": " << e.what() << '\n';
        continue;
      }
      wrong.emplace_back(e.what());
    }
    for (const std::string& text : wrong) out << "FAILED " << c.id << ": " << text << '\n';
    ++(wrong.empty() ? counts.passed : counts.failed);
  }
  check(counts.passed + counts.failed + counts.skipped > 0, "no case of {} has '{}' in its id",
        directory.string(), options.filter);
  out << counts.passed << " passed, " << counts.failed << " failed, " << counts.skipped << " skipped\n";
  return counts;
}

}  // namespace rill::parity
