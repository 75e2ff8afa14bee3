/// The number of processors available to this process.
#pragma once

#include <string>

namespace rill {

/// Processors in the affinity mask, within the quota of the control group; at least 1.
int usable_processors();

/// Processors that the control groups of this process (version 1 or 2) grant, rounded up; 0 without a limit.
/// `root` is put before /proc and /sys.
int cgroup_processors(const std::string& root = "");

}  // namespace rill
