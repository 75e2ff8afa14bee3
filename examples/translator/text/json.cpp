#include <translator/text/json.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <rill/core/error.h>
#include <rill/core/io/file.h>
#include <translator/text/tokenizer.h>

namespace translator {
namespace {

using nlohmann::json;

/// Refuses objects that repeat a name, and excessive nesting.
class Strictness {
 public:
  bool operator()(int depth, json::parse_event_t event, const json& value) {
    constexpr int deepest = 100;
    rill::check(depth <= deepest, "it is nested more than {} deep", deepest);
    if (event == json::parse_event_t::object_start) {
      names_.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      names_.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto name = value.get<std::string>();
      rill::check(names_.back().insert(name).second, "'{}' occurs twice in an object", printable(name));
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> names_;
};

std::string shown(const json& value) {
  const std::string text = printable(value.dump(-1, ' ', false, json::error_handler_t::replace));
  return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

}  // namespace

json read_json(const std::string& path) {
  constexpr std::uint64_t most = std::uint64_t{256} << 20;
  const std::string text = rill::read_file(path, most);
  try {
    return json::parse(
        text, [strict = std::make_shared<Strictness>()](int depth, json::parse_event_t event, json& value) {
          return (*strict)(depth, event, value);
        });
  } catch (const json::parse_error& error) {
    rill::fail("{}: it is not JSON, or was cut off, at byte {}", printable(path), error.byte);
  } catch (const json::exception& error) {
    rill::fail("{}: {}", printable(path), printable(error.what()));
  } catch (const rill::Error& error) {
    rill::fail("{}: {}", printable(path), error.what());
  }
}

json number_or_null(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

Fields::Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {
  rill::check(object_.is_object(), "{}: it holds {}, not an object", where_, shown(object_));
}

bool Fields::has(std::string_view name) const { return object_.contains(name); }

const json& Fields::value(std::string_view name) {
  const auto found = object_.find(name);
  rill::check(found != object_.end(), "{}: '{}' is missing", where_, name);
  read_.emplace(name);
  return *found;
}

std::string Fields::string(std::string_view name) {
  const json& field = value(name);
  rill::check(field.is_string(), "{}: '{}' is {}; it must be a string", where_, name, shown(field));
  return field.get<std::string>();
}

bool Fields::boolean(std::string_view name) {
  const json& field = value(name);
  rill::check(field.is_boolean(), "{}: '{}' is {}; it must be true or false", where_, name, shown(field));
  return field.get<bool>();
}

std::int64_t Fields::integer(std::string_view name, std::int64_t lowest, std::int64_t highest) {
  const json& field = value(name);
  const bool small = field.is_number_integer() &&
                     (!field.is_number_unsigned() ||
                      field.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
  rill::check(small && field.get<std::int64_t>() >= lowest && field.get<std::int64_t>() <= highest,
              "{}: '{}' is {}; it must be a whole number from {} to {}", where_, name, shown(field), lowest,
              highest);
  return field.get<std::int64_t>();
}

double Fields::number(std::string_view name, double lowest, double highest) {
  const json& field = value(name);
  rill::check(field.is_number() && field.get<double>() >= lowest && field.get<double>() <= highest,
              "{}: '{}' is {}; it must be a number from {} to {}", where_, name, shown(field), lowest,
              highest);
  return field.get<double>();
}

void Fields::finish() const {
  std::string unknown;
  for (const auto& [name, field] : object_.items()) {
    if (!read_.contains(name)) {
      unknown += (unknown.empty() ? "'" : ", '") + printable(name) + "'";
    }
  }
  rill::check(unknown.empty(), "{}: {} is not known here", where_, unknown);
}

}  // namespace translator
