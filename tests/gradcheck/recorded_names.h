/// The ops that the sources record and the modules that they define.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>

namespace test {

/// The names of ops in a source text: the literals of `record("name", …)`, of `const char* name = "name"` in
/// pointwise structs, and of structs that serve several ops.
std::set<std::string> recorded_names(std::string_view source);

/// The names of ops in all .h and .cpp files below `folder`.
std::set<std::string> recorded_names_below(const std::filesystem::path& folder);

/// The classes derived from Module in a source text, and in all .h and .cpp files below `folder`.
std::set<std::string> module_names(std::string_view source);
std::set<std::string> module_names_below(const std::filesystem::path& folder);

}  // namespace test
