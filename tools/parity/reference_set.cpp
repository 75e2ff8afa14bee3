#include <parity/reference_set.h>

#include <algorithm>
#include <set>
#include <utility>

#include <parity/call.h>
#include <rill/core/error.h>
#include <rill/core/io/file.h>

namespace rill::parity {
namespace {

using nlohmann::json;

constexpr std::uint64_t largest_index = std::uint64_t{1} << 28;

const json& field(const json& entry, const char* name) {
  check(entry.is_object() && entry.contains(name), "'{}' is missing", name);
  return entry[name];
}

std::string text(const json& entry, const char* name) {
  const json& value = field(entry, name);
  check(value.is_string(), "'{}' is {}; expected a text", name, value.dump());
  return value.get<std::string>();
}

std::optional<double> number(const json& entry, const char* name) {
  if (!entry.contains(name) || entry[name].is_null()) return std::nullopt;
  return to_number(entry[name], name);
}

Case read_case(const json& entry) {
  Case c;
  c.id = text(entry, "id");
  c.file = text(entry, "file");
  c.prefix = text(entry, "prefix");
  c.kind = text(entry, "kind");
  c.op = text(entry, "op");
  c.args = field(entry, "args");
  check(c.args.is_object(), "'args' is {}; expected an object", c.args.dump());
  const json& tensors = field(entry, "tensors");
  check(tensors.is_object(), "'tensors' is {}; expected an object", tensors.dump());
  for (const auto& [role, names] : tensors.items()) {
    check(names.is_array(), "tensors.{} is {}; expected a list of names", role, names.dump());
    for (const json& name : names) {
      check(name.is_string(), "tensors.{} lists {}; expected a name", role, name.dump());
      c.tensors[role].push_back(name.get<std::string>());
    }
  }
  const json& tolerance = field(entry, "tol");
  c.tolerance.rtol = to_number(field(tolerance, "rtol"), "tol.rtol");
  c.tolerance.atol = to_number(field(tolerance, "atol"), "tol.atol");
  c.float32_error = number(entry, "f32_max_abs_err");
  c.float32_loss_error = number(entry, "f32_loss_max_abs_err");
  if (entry.contains("loss")) c.loss = text(entry, "loss");
  if (entry.contains("optional")) {
    check(entry["optional"].is_boolean(), "'optional' is {}; expected true or false",
          entry["optional"].dump());
    c.optional = entry["optional"].get<bool>();
  }
  return c;
}

std::vector<Case> read_index(const json& index) {
  const json& format = field(index, "format");
  check(format == 1, "its format is {}; this program reads format 1", format.dump());
  const json& entries = field(index, "cases");
  check(entries.is_array(), "'cases' is not a list");
  std::vector<Case> cases;
  std::set<std::string> ids;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    try {
      cases.push_back(read_case(entries[i]));
    } catch (const Error& e) {
      const bool named = entries[i].is_object() && entries[i].contains("id");
      fail("case {} ({}): {}", i, named ? entries[i]["id"].dump() : "no id", e.what());
    }
    check(ids.insert(cases.back().id).second, "the id '{}' comes twice", cases.back().id);
  }
  return cases;
}

}  // namespace

const std::vector<std::string>& Case::names(std::string_view role) const {
  static const std::vector<std::string> none;
  const auto found = tensors.find(role);
  return found == tensors.end() ? none : found->second;
}

bool Case::has(std::string_view role, std::string_view name) const {
  const auto& all = names(role);
  return std::find(all.begin(), all.end(), name) != all.end();
}

ReferenceSet::ReferenceSet(std::filesystem::path directory) : directory_(std::move(directory)) {
  check(std::filesystem::is_directory(directory_), "'{}' is not a directory", directory_.string());
  const std::filesystem::path path = directory_ / "index.json";
  const json index = json::parse(read_file(path, largest_index), nullptr, false);
  check(!index.is_discarded(), "{}: not JSON", path.string());
  try {
    cases_ = read_index(index);
  } catch (const Error& e) {
    fail("{}: {}", path.string(), e.what());
  }
}

const Tensor& ReferenceSet::tensor(const Case& c, std::string_view role, std::string_view name) const {
  auto found = files_.find(c.file);
  if (found == files_.end()) found = files_.emplace(c.file, load_safetensors(directory_ / c.file)).first;
  const std::string full = fmt::format("{}{}.{}", c.prefix, role, name);
  const Tensor* tensor = found->second.find(full);
  check(tensor != nullptr, "{} has no tensor '{}'", c.file, full);
  return *tensor;
}

}  // namespace rill::parity
