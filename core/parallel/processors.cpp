#include <rill/core/parallel/processors.h>

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

namespace rill {
namespace {

// The smaller of two limits; 0 means unlimited.
int min_limit(int a, int b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

int processors_of(std::int64_t quota, std::int64_t period) {
  if (quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::min<std::int64_t>((quota + period - 1) / period, 1 << 20));
}

// cpu.max contains "max 100000" or "150000 100000".
int unified_limit(const std::string& directory) {
  std::ifstream file(directory + "/cpu.max");
  std::int64_t quota = 0;
  std::int64_t period = 0;
  return file >> quota >> period ? processors_of(quota, period) : 0;
}

int legacy_limit(const std::string& directory) {
  std::ifstream quota_file(directory + "/cpu.cfs_quota_us");
  std::ifstream period_file(directory + "/cpu.cfs_period_us");
  std::int64_t quota = 0;
  std::int64_t period = 0;
  return quota_file >> quota && period_file >> period ? processors_of(quota, period) : 0;
}

// A cgroup is also limited by its ancestors, up to the mount point. In a container the path may not exist
// below the mount point, which then is the cgroup itself.
template <class Limit>
int limit_of_path(const std::string& mount, std::string path, Limit limit_of) {
  int limit = 0;
  while (path.size() > 1) {
    limit = min_limit(limit, limit_of(mount + path));
    path.resize(path.rfind('/'));
  }
  return min_limit(limit, limit_of(mount));
}

bool lists_cpu(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');) {
    if (name == "cpu") return true;
  }
  return false;
}

}  // namespace

int cgroup_processors(const std::string& root) {
  std::ifstream groups(root + "/proc/self/cgroup");
  int limit = 0;
  for (std::string line; std::getline(groups, line);) {  // hierarchy:controllers:path
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || second + 1 >= line.size() || line[second + 1] != '/') continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    const std::string mount = root + "/sys/fs/cgroup";
    if (controllers.empty()) {
      limit = min_limit(limit, limit_of_path(mount, path, unified_limit));
    } else if (lists_cpu(controllers)) {
      limit = min_limit(limit, limit_of_path(mount + "/cpu", path, legacy_limit));
      limit = min_limit(limit, limit_of_path(mount + "/" + controllers, path, legacy_limit));
    }
  }
  return limit;
}

int usable_processors() {
  int count = static_cast<int>(std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t mask;
  CPU_ZERO(&mask);
  // Fails on machines with more than 1024 processors; hardware_concurrency() is used then.
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) count = CPU_COUNT(&mask);
#endif
  return std::max(1, min_limit(count, cgroup_processors()));
}

}  // namespace rill
