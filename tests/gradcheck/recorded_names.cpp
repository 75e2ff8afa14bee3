#include <gradcheck/recorded_names.h>

#include <fstream>
#include <iterator>
#include <regex>

namespace test {

namespace {

using Names = std::set<std::string>;

/// What the pattern's group holds wherever it matches.
Names matches(std::string_view source, const std::regex& pattern) {
  Names names;
  const std::string text(source);
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    names.insert((*at)[1]);
  return names;
}

/// A file without the lines that are comments.
std::string code_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text, line;
  while (std::getline(file, line)) {
    const auto code = line.find_first_not_of(' ');
    if (code == std::string::npos || line.compare(code, 2, "//") != 0) text += line + '\n';
  }
  return text;
}

Names names_below(const std::filesystem::path& room, Names (*names_of)(std::string_view)) {
  Names names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(room)) {
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

Names recorded_names_below(const std::filesystem::path& room) { return names_below(room, recorded_names); }

Names module_names(std::string_view source) {
  static const std::regex pattern(
      R"re(\bclass (\w+) final : public (?:Module|RecurrentLayers|RecurrentCell)\b)re");
  return matches(source, pattern);
}

Names module_names_below(const std::filesystem::path& room) { return names_below(room, module_names); }

}  // namespace test
