#include <parity/call.h>

#include <cmath>
#include <limits>

namespace rill::parity {
namespace {

std::int64_t to_integer(const nlohmann::json& value, std::string_view what) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  const double number = to_number(value, what);
  check(std::abs(number) < 9e15 && std::trunc(number) == number, "{}: {} is not an integer", what, number);
  return static_cast<std::int64_t>(number);
}

}  // namespace

double to_number(const nlohmann::json& value, std::string_view what) {
  if (value.is_number()) return value.get<double>();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (value == "inf" || value == "Infinity") return infinity;
  if (value == "-inf" || value == "-Infinity") return -infinity;
  fail("{}: {} is not a number", what, value.dump());
}

Call::Call(const nlohmann::json& args) {
  check(args.is_object(), "args: {} is not an object", args.dump());
  for (const auto& [name, value] : args.items()) arguments_[name] = value;
}

bool Call::has(std::string_view name) {
  const auto found = arguments_.find(name);
  if (found == arguments_.end()) return false;
  const auto* value = std::get_if<nlohmann::json>(&found->second);
  if (value == nullptr || !value->is_null()) return true;
  used_.emplace(name);
  return false;
}

const Argument& Call::argument(std::string_view name) {
  const auto found = arguments_.find(name);
  check(found != arguments_.end(), "argument '{}' is missing", name);
  used_.emplace(name);
  return found->second;
}

const nlohmann::json& Call::json(std::string_view name) {
  const auto* value = std::get_if<nlohmann::json>(&argument(name));
  check(value != nullptr, "argument '{}' is a tensor; expected a plain value", name);
  return *value;
}

Tensor Call::tensor(std::string_view name) {
  const auto* value = std::get_if<Tensor>(&argument(name));
  check(value != nullptr, "argument '{}' is not a tensor", name);
  return *value;
}

std::vector<Tensor> Call::tensors(std::string_view name) {
  const Argument& given = argument(name);
  if (const auto* list = std::get_if<std::vector<Tensor>>(&given)) return *list;
  const auto* names = std::get_if<nlohmann::json>(&given);
  check(names != nullptr && names->is_array(), "argument '{}' is not a list", name);
  std::vector<Tensor> list;
  for (const auto& item : *names) {
    check(item.is_string(), "argument '{}' lists {}; expected the name of a tensor", name, item.dump());
    list.push_back(tensor(item.get<std::string>()));
  }
  return list;
}

double Call::number(std::string_view name) { return to_number(json(name), name); }

std::int64_t Call::integer(std::string_view name) { return to_integer(json(name), name); }

bool Call::flag(std::string_view name) {
  const nlohmann::json& value = json(name);
  check(value.is_boolean(), "{}: {} is neither true nor false", name, value.dump());
  return value.get<bool>();
}

std::string Call::text(std::string_view name) {
  const nlohmann::json& value = json(name);
  check(value.is_string(), "{}: {} is not a text", name, value.dump());
  return value.get<std::string>();
}

Dims Call::dims(std::string_view name) {
  const nlohmann::json& value = json(name);
  if (!value.is_array()) return {to_integer(value, name)};
  Dims dims;
  for (const auto& item : value) dims.push_back(to_integer(item, name));
  return dims;
}

void Call::check_all_used() const {
  std::string unused;
  for (const auto& [name, value] : arguments_) {
    const auto* plain = std::get_if<nlohmann::json>(&value);
    if (used_.contains(name) || (plain != nullptr && plain->is_null())) continue;
    unused += (unused.empty() ? "'" : ", '") + name + "'";
  }
  if (!unused.empty()) throw Unsupported(fmt::format("argument {} is not known here", unused));
}

}  // namespace rill::parity
