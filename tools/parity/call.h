/// The arguments of one call of an op or a module: tensors and JSON values by name, each of which must be
/// used.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <rill/core/error.h>
#include <rill/core/io/safetensors.h>
#include <rill/core/shape.h>

namespace rill::parity {

/// Thrown for what rill does not offer: an optional case that needs it is skipped.
class Unsupported : public Error {
 public:
  using Error::Error;
};

/// A single result, under the name that the sets give it.
inline NamedTensors single(Tensor result) { return {{"out", std::move(result)}}; }

using Argument = std::variant<nlohmann::json, Tensor, std::vector<Tensor>>;

/// A JSON number, or an infinity or NaN written as a string ("inf", "-inf"); throws Error naming `what`.
double to_number(const nlohmann::json& value, std::string_view what);

class Call {
 public:
  Call() = default;
  explicit Call(const nlohmann::json& args);

  void set(std::string name, Argument value) { arguments_[std::move(name)] = std::move(value); }

  /// Whether it was given and is not null. A null counts as used.
  bool has(std::string_view name);

  /// Without a default they throw Error when the argument is absent, and always when its type is wrong.
  Tensor tensor(std::string_view name);
  Tensor tensor_or_none(std::string_view name) { return has(name) ? tensor(name) : Tensor(); }
  /// A list of tensors, or of names of tensor arguments.
  std::vector<Tensor> tensors(std::string_view name);
  double number(std::string_view name);
  double number(std::string_view name, double otherwise) { return has(name) ? number(name) : otherwise; }
  std::int64_t integer(std::string_view name);
  std::int64_t integer(std::string_view name, std::int64_t otherwise) {
    return has(name) ? integer(name) : otherwise;
  }
  bool flag(std::string_view name);
  bool flag(std::string_view name, bool otherwise) { return has(name) ? flag(name) : otherwise; }
  std::string text(std::string_view name);
  /// One integer or a list.
  Dims dims(std::string_view name);
  Dims dims_or_none(std::string_view name) { return has(name) ? dims(name) : Dims(); }
  const nlohmann::json& json(std::string_view name);

  /// Throws Unsupported naming every argument that nobody asked for.
  void check_all_used() const;

 private:
  const Argument& argument(std::string_view name);

  std::map<std::string, Argument, std::less<>> arguments_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace rill::parity
