#include <rill/optim/state.h>

#include <map>
#include <string_view>

namespace rill::optim::detail {

std::vector<Tensor> match_state(const std::string& op, const NamedTensors& wanted,
                                const NamedTensors& given) {
  std::map<std::string_view, const Tensor*> by_name;
  std::string faults;
  for (const auto& [key, t] : given) {
    if (!by_name.emplace(key, &t).second) faults += fmt::format("; '{}' comes twice", key);
  }
  std::vector<Tensor> found;
  for (const auto& [key, want] : wanted) {
    const auto it = by_name.find(key);
    if (it == by_name.end()) {
      faults += fmt::format("; missing '{}'", key);
      continue;
    }
    const Tensor& t = *it->second;
    by_name.erase(it);
    if (!t.defined()) {
      faults += fmt::format("; '{}' is undefined", key);
    } else if (t.shape() != want.shape() || t.dtype() != want.dtype()) {
      faults += fmt::format("; '{}' is {} {}, wanted {} {}", key, name(t.dtype()), t.shape(),
                            name(want.dtype()), want.shape());
    }
    found.push_back(t);
  }
  for (const auto& item : by_name) faults += fmt::format("; unexpected '{}'", item.first);
  check(faults.empty(), "{}: the state does not fit{}; nothing was changed", op, faults);
  return found;
}

}  // namespace rill::optim::detail
