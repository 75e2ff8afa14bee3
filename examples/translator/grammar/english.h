/// English spelling: plurals, verb forms, a and an.
#pragma once

#include <string>
#include <string_view>

#include <translator/grammar/lexicon.h>

namespace translator::grammar::english {

/// "mice", "boxes", "cherries".
std::string noun(const Noun& noun, bool plural);

std::string third_person(std::string_view base);  ///< "goes", "carries"
std::string past(const Verb& verb);               ///< "ate", "carried"
std::string ing(const Verb& verb);                ///< "making", "running"

/// am, are or is; was or were.
std::string_view be(Person person);
std::string_view was(Person person);

/// The present of a verb: "has", "eats", "eat".
std::string present(std::string_view base, Person person);

/// The words as a sentence that ends in `sign`: "a" before a vowel is "an", the first letter a capital.
std::string sentence(const Words& words, char sign);

}  // namespace translator::grammar::english
