/// French as it is written: plurals, agreement, conjugation, elision and contraction.
#pragma once

#include <string>
#include <string_view>

#include <translator/grammar/lexicon.h>

namespace translator::grammar::french {

/// The simple tenses. The others are made of these with participles and infinitives.
enum class Tense { present, imperfect, future };

/// The form of a verb given by its infinitive (without "se"), such as "mangeons".
std::string conjugate(std::string_view infinitive, Tense tense, Person person);

/// The past participle, such as "vue" or "pris".
std::string participle(std::string_view infinitive, Gender gender, bool plural);

/// The plural of a noun or of a masculine adjective by its ending: chevaux, gâteaux, souris, clés.
std::string plural(std::string_view singular);

/// The form of a noun.
std::string noun(const Noun& noun, bool plural);

/// The form of an adjective; `next` is the word behind it if it stands before its noun ("vieil" before
/// "homme").
std::string adjective(const Adjective& adjective, Gender gender, bool plural, std::string_view next = {});

/// Whether a word begins with a vowel to the ear, so that le, je, ne … lose theirs before it: eau, homme, but
/// not hibou.
bool begins_with_vowel(std::string_view word);

/// The words as a sentence that ends in `sign`: le, je, que … elided, à le and de les contracted, first
/// letter large.
///
/// Articles are spelled "=le", "=la", "=les" to tell them from the pronouns, which are not contracted ("de le
/// voir").
std::string sentence(const Words& words, char sign);

}  // namespace translator::grammar::french
