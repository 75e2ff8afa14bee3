/// French spelling: plurals, agreement, conjugation, elision and contraction.
#pragma once

#include <string>
#include <string_view>

#include <translator/grammar/lexicon.h>

namespace translator::grammar::french {

/// The simple tenses; the others combine them with participles and infinitives.
enum class SimpleTense { present, imperfect, future };

/// The form of a verb given by its infinitive (without "se"), such as "mangeons".
std::string conjugate(std::string_view infinitive, SimpleTense tense, Person person);

/// The past participle, such as "vue" or "pris".
std::string participle(std::string_view infinitive, Gender gender, bool plural);

/// The plural of a noun or of a masculine adjective by its ending: chevaux, gâteaux, souris, clés.
std::string plural(std::string_view singular);

/// The form of a noun.
std::string noun(const Noun& noun, bool plural);

/// The form of an adjective; `next` is the word after it if it precedes its noun ("vieil" before "homme").
std::string adjective(const Adjective& adjective, Gender gender, bool plural, std::string_view next = {});

/// Whether a word begins with a vowel sound, so that le, je, ne … are elided before it: eau, homme, but not
/// hibou.
bool begins_with_vowel(std::string_view word);

/// The words as a sentence that ends in `sign`: le, je, que … elided, à le and de les contracted, the first
/// letter a capital.
///
/// Articles are spelled "=le", "=la", "=les" to distinguish them from the pronouns, which are not contracted
/// ("de le voir").
std::string sentence(const Words& words, char sign);

}  // namespace translator::grammar::french
