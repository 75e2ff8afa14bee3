/// The names of every op that the sources record.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>

namespace test {

/// The names in a source text: the literals of `record("name", …)` and of pointwise structs' `const char*
/// name = "name"`, also where one struct serves several names.
std::set<std::string> recorded_names(std::string_view source);

/// The names in all .h and .cpp files below `room`.
std::set<std::string> recorded_names_below(const std::filesystem::path& room);

/// The classes that a source text derives from Module, and those in all headers below `room`.
std::set<std::string> module_names(std::string_view source);
std::set<std::string> module_names_below(const std::filesystem::path& room);

}  // namespace test
