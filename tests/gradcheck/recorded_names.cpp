#include <gradcheck/recorded_names.h>

#include <fstream>
#include <iterator>
#include <regex>

namespace test {

std::set<std::string> recorded_names(std::string_view source) {
  static const std::regex pattern(
      R"re((?:\brecord(?:_part)?\(\s*|\bconst char\* (?:op_)?name = |\breshape_ones\()"(\w+)")re");
  std::set<std::string> names;
  const std::string text(source);
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    names.insert((*at)[1]);
  return names;
}

std::set<std::string> recorded_names_below(const std::filesystem::path& room) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(room)) {
    const auto extension = entry.path().extension();
    if (extension != ".cpp" && extension != ".h") continue;
    std::ifstream file(entry.path());
    std::string text, line;
    while (std::getline(file, line)) {
      const auto code = line.find_first_not_of(' ');
      if (code == std::string::npos || line.compare(code, 2, "//") != 0) text += line + '\n';
    }
    names.merge(recorded_names(text));
  }
  return names;
}

}  // namespace test
