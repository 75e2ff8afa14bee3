#include <rill/core/io/checkpoint.h>

#include <algorithm>
#include <bit>

#include <rill/core/error.h>
#include <rill/core/ops.h>

namespace rill {
namespace {

constexpr std::string_view counter_prefix = "counter:";  // member names contain no colon

Tensor integers(const std::vector<std::uint64_t>& values, const Shape& shape) {
  std::vector<std::int64_t> bits;
  for (const std::uint64_t value : values) bits.push_back(std::bit_cast<std::int64_t>(value));
  return tensor(bits, shape);
}

std::uint64_t integer(const Tensor& t, std::int64_t index) {
  return std::bit_cast<std::uint64_t>(t.to_vector<std::int64_t>()[static_cast<std::size_t>(index)]);
}

}  // namespace

namespace detail {

std::vector<Tensor> match_state(std::string_view op, const NamedTensors& expected,
                                const NamedTensors& state) {
  std::map<std::string_view, const Tensor*> by_name;
  std::string mismatches;
  for (const auto& [key, t] : state) {
    if (!by_name.emplace(key, &t).second) mismatches += fmt::format("; duplicate '{}'", key);
  }
  std::vector<Tensor> found;
  for (const auto& [key, like] : expected) {
    const auto it = by_name.find(key);
    if (it == by_name.end()) {
      mismatches += fmt::format("; missing '{}'", key);
      continue;
    }
    const Tensor& t = *it->second;
    by_name.erase(it);
    if (!t.defined()) {
      mismatches += fmt::format("; '{}' is undefined", key);
    } else if (t.shape() != like.shape() || t.dtype() != like.dtype()) {
      mismatches += fmt::format("; '{}' is {} {}, expected {} {}", key, name(t.dtype()), t.shape(),
                                name(like.dtype()), like.shape());
    }
    found.push_back(t);
  }
  for (const auto& item : by_name) mismatches += fmt::format("; unexpected '{}'", item.first);
  check(mismatches.empty(), "{}: the state does not fit{}; nothing was changed", op, mismatches);
  return found;
}

NamedTensors with_counters(NamedTensors state_dict, const Counters& counters) {
  for (const auto& [name, value] : counters) {
    state_dict.emplace_back(std::string(counter_prefix) + name, integers({value}, {}));
  }
  return state_dict;
}

std::pair<NamedTensors, Counters> without_counters(const NamedTensors& state) {
  std::pair<NamedTensors, Counters> parts;
  for (const auto& [name, t] : state) {
    if (name.starts_with(counter_prefix)) {
      parts.second.emplace_back(name.substr(counter_prefix.size()), integer(t, 0));
    } else {
      parts.first.emplace_back(name, t);
    }
  }
  return parts;
}

}  // namespace detail

namespace {

/// A section with a single tensor `key`.
template <class Section, class Save, class Load>
Section single(std::string_view name, const char* key, const Save& save, const Load& load) {
  const auto state = [key, save] { return NamedTensors{{key, save()}}; };
  return {std::string(name), state,
          [name = std::string(name), state](const NamedTensors& given) {
            detail::match_state(name, state(), given);
          },
          [load](const NamedTensors& given) { load(given.front().second); }};
}

}  // namespace

Checkpoint& Checkpoint::add_section(Section section) {
  check(!section.name.empty() && section.name.find('/') == std::string::npos,
        "checkpoint: '{}' is not a valid section name; it must not be empty or contain '/'", section.name);
  for (const Section& other : sections_) {
    check(other.name != section.name, "checkpoint: duplicate name '{}'", section.name);
  }
  sections_.push_back(std::move(section));
  return *this;
}

Checkpoint& Checkpoint::add(std::string_view name, Rng& rng) {
  return add_section(single<Section>(
      name, "state",
      [&rng] {
        const RngState& s = rng.state();
        return integers({s.seed, s.stream, s.counter}, {3});
      },
      [&rng](const Tensor& t) {
        rng.set_state({integer(t, 0), integer(t, 1), integer(t, 2)});
      }));
}

Checkpoint& Checkpoint::add(std::string_view name, std::int64_t& counter) {
  return add_section(single<Section>(
      name, "", [&counter] { return tensor({counter}, Shape{}); },
      [&counter](const Tensor& t) { counter = t.item<std::int64_t>(); }));
}

Checkpoint& Checkpoint::add(std::string_view name, double& value) {
  return add_section(single<Section>(
      name, "", [&value] { return scalar(value, float64); },
      [&value](const Tensor& t) { value = t.item<double>(); }));
}

NamedTensors Checkpoint::state() const {
  NamedTensors all;
  for (const Section& section : sections_) {
    for (auto& [name, t] : section.state()) {
      all.emplace_back(name.empty() ? section.name : section.name + '/' + name, std::move(t));
    }
  }
  return all;
}

void Checkpoint::load_state(const NamedTensors& state) {
  std::map<std::string, NamedTensors> by_section;
  for (const auto& [name, t] : state) {
    const std::size_t slash = name.find('/');
    by_section[name.substr(0, slash)].emplace_back(slash == std::string::npos ? "" : name.substr(slash + 1),
                                                   t);
  }
  std::string mismatches;
  for (const Section& section : sections_) {
    try {
      section.check(by_section[section.name]);
    } catch (const Error& error) {
      mismatches += fmt::format("; {}: {}", section.name, error.what());
    }
  }
  for (const auto& [name, tensors] : by_section) {
    const auto is_named = [&](const Section& section) { return section.name == name; };
    if (std::none_of(sections_.begin(), sections_.end(), is_named)) {
      mismatches += fmt::format("; unexpected '{}'", name);
    }
  }
  check(
      mismatches.empty(),
      "checkpoint: the state does not fit{}; nothing was changed; add the same objects as when saving, under "
      "the same names",
      mismatches);
  for (const Section& section : sections_) section.load(by_section[section.name]);
}

void Checkpoint::save(const std::filesystem::path& path, const Metadata& metadata) const {
  save_safetensors(path, state(), metadata);
}

Checkpoint::Metadata Checkpoint::load(const std::filesystem::path& path) {
  SafetensorsFile file = load_safetensors(path);
  try {
    load_state(file.tensors);
  } catch (const Error& error) {
    fail("{}: {}", path.string(), error.what());
  }
  return std::move(file.metadata);
}

}  // namespace rill
