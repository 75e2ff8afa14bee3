#include <translator/grammar/english.h>

#include <algorithm>
#include <array>

namespace translator::grammar::english {
namespace {

using namespace std::string_view_literals;

bool is_vowel(char c) { return "aeiou"sv.find(c) != std::string_view::npos; }

/// Whether y is written ie before an ending: carry, but play.
bool ends_in_soft_y(std::string_view word) {
  return word.size() > 1 && word.back() == 'y' && !is_vowel(word[word.size() - 2]);
}

/// The ending of plurals and of the third person.
std::string with_s(std::string_view word) {
  if (ends_in_soft_y(word)) {
    return std::string(word.substr(0, word.size() - 1)) + "ies";
  }
  static constexpr std::array hissing = {"s"sv, "x"sv, "sh"sv, "ch"sv};
  const bool e =
      std::any_of(hissing.begin(), hissing.end(), [&](std::string_view end) { return word.ends_with(end); });
  return std::string(word) + (e ? "es" : "s");
}

}  // namespace

std::string noun(const Noun& noun, bool plural) {
  if (!plural) {
    return std::string(noun.english);
  }
  return noun.english_plural.empty() ? with_s(noun.english) : std::string(noun.english_plural);
}

std::string third_person(std::string_view base) {
  return base == "have" ? "has" : base == "go" || base == "do" ? std::string(base) + "es" : with_s(base);
}

std::string past(const Verb& verb) {
  if (!verb.past.empty()) {
    return std::string(verb.past);
  }
  if (ends_in_soft_y(verb.english)) {
    return std::string(verb.english.substr(0, verb.english.size() - 1)) + "ied";
  }
  return std::string(verb.english) + (verb.english.ends_with('e') ? "d" : "ed");
}

std::string ing(const Verb& verb) {
  if (!verb.ing.empty()) {
    return std::string(verb.ing);
  }
  const bool mute_e = verb.english.ends_with('e') && !verb.english.ends_with("ee");
  return std::string(verb.english.substr(0, verb.english.size() - (mute_e ? 1 : 0))) + "ing";
}

std::string_view be(Person person) {
  return person == Person::i ? "am" : person == Person::he ? "is" : "are";
}

std::string_view was(Person person) { return person == Person::i || person == Person::he ? "was" : "were"; }

std::string present(std::string_view base, Person person) {
  return person == Person::he ? third_person(base) : std::string(base);
}

std::string sentence(const Words& words, char sign) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool before_vowel = i + 1 < words.size() && is_vowel(words[i + 1][0]);
    if (i > 0 && words[i] != ",") {
      text += ' ';
    }
    text += words[i] == "a" && before_vowel ? "an" : words[i];
  }
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') {
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  }
  return text + sign;
}

}  // namespace translator::grammar::english
