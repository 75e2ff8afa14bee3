#include <gradcheck/recorded_names.h>

#include <fstream>
#include <iterator>
#include <regex>

namespace test {

namespace {

using Names = std::set<std::string>;

/// The first group of every match.
Names matches(std::string_view source, const std::regex& pattern) {
  Names names;
  const std::string text(source);
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    names.insert((*at)[1]);
  return names;
}

/// The text of a file without comment lines.
std::string code_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text, line;
  while (std::getline(file, line)) {
    const auto code = line.find_first_not_of(' ');
    if (code == std::string::npos || line.compare(code, 2, "//") != 0) text += line + '\n';
  }
  return text;
}

Names names_below(const std::filesystem::path& folder, Names (*names_of)(std::string_view)) {
  Names names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const auto extension = entry.path().extension();
    if (extension == ".cpp" || extension == ".h") names.merge(names_of(code_of(entry.path())));
  }
  return names;
}

}  // namespace

Names recorded_names(std::string_view source) {
  static const std::regex pattern(R"re((?:\brecord(?:_part)?\(\s*|\bconst char\* (?:op_)?name = )re"
                                  R"re(|\breshape_ones\(|\b(?:Affine|Square)\{|_unit\{\s*\.name = )re"
                                  R"re()"(\w+)")re");
  return matches(source, pattern);
}

Names recorded_names_below(const std::filesystem::path& folder) {
  return names_below(folder, recorded_names);
}

Names module_names(std::string_view source) {
  static const std::regex pattern(
      R"re(\bclass (\w+) final : public (?:Module|RecurrentLayers|RecurrentCell)\b)re");
  return matches(source, pattern);
}

Names module_names_below(const std::filesystem::path& folder) { return names_below(folder, module_names); }

}  // namespace test
