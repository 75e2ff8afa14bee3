/// JSON files, read strictly: what is missing, of the wrong kind or not known is an error that names the
/// file.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace translator {

/// The JSON value in a file. Throws rill::Error naming the file if it cannot be read, is larger than 256 MB,
/// is no JSON, or has a name twice in an object.
nlohmann::json read_json(const std::string& path);

/// Writes a value, two spaces an indent, replacing the file as a whole (see rill::write_file_atomically).
void write_json(const std::string& path, const nlohmann::json& value);

/// null for a number that is not finite, which JSON has no way to write.
nlohmann::json number_or_null(double value);

/// The fields of a JSON object, each asked for by name and kind.
///
/// `where` is the beginning of every message: "model/config.json: 'hidden' is -3; it must be 1 to 65536".
class Fields {
 public:
  /// Throws rill::Error if `object` is no object. The object must outlive the Fields.
  Fields(const nlohmann::json& object, std::string where);

  bool has(std::string_view name) const;

  // Each throws rill::Error if the field is missing, of another kind or outside the range.
  std::string string(std::string_view name);
  bool boolean(std::string_view name);
  std::int64_t integer(std::string_view name, std::int64_t lowest, std::int64_t highest);
  double number(std::string_view name, double lowest, double highest);
  const nlohmann::json& value(std::string_view name);

  /// Throws rill::Error naming the fields that nobody asked for.
  void finish() const;

 private:
  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace translator
