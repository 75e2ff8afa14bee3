/// JSON files, read strictly: fields that are missing, unknown or of the wrong type are errors naming the
/// file.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace translator {

/// The JSON value in a file. Throws rill::Error naming the file if it cannot be read, is larger than 256 MB,
/// is not JSON, or repeats a name in an object.
nlohmann::json read_json(const std::string& path);

/// The number, or null if it is not finite, which JSON cannot express.
nlohmann::json number_or_null(double value);

/// The fields of a JSON object, each read by name and type.
///
/// `where` begins every message: "model/config.json: 'hidden' is -3; it must be 1 to 65536".
class Fields {
 public:
  /// Throws rill::Error unless `object` is a JSON object, which must outlive the Fields.
  Fields(const nlohmann::json& object, std::string where);

  bool has(std::string_view name) const;

  // Each throws rill::Error if the field is missing, of another type or out of range.
  std::string string(std::string_view name);
  bool boolean(std::string_view name);
  std::int64_t integer(std::string_view name, std::int64_t lowest, std::int64_t highest);
  double number(std::string_view name, double lowest, double highest);
  const nlohmann::json& value(std::string_view name);

  /// Throws rill::Error naming the fields that were not read.
  void finish() const;

 private:
  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace translator
