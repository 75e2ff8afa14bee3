/// Number of processors available to this process. Internal.
#pragma once

#include <string>

namespace rill {

/// Number of processors in the affinity mask, limited by the cgroup quota; at least 1.
int usable_processors();

/// The cgroup (v1 or v2) quota of this process in processors, rounded up; 0 if unlimited. `root` is prepended
/// to /proc and /sys.
int cgroup_processors(const std::string& root = "");

}  // namespace rill
