#include <translator/grammar/french.h>

#include <algorithm>
#include <array>
#include <iterator>

#include <rill/core/error.h>

namespace translator::grammar::french {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t persons = 5;

/// An irregular verb.
struct Irregular {
  std::string_view infinitive;
  std::array<std::string_view, persons> present;
  std::string_view participle;
  std::string_view future_stem;
};

constexpr Irregular irregular_table[] = {
    {"aller", {"vais", "vas", "va", "allons", "vont"}, "allé", "ir"},
    {"avoir", {"ai", "as", "a", "avons", "ont"}, "eu", "aur"},
    {"être", {"suis", "es", "est", "sommes", "sont"}, "été", "ser"},
    {"boire", {"bois", "bois", "boit", "buvons", "boivent"}, "bu", "boir"},
    {"connaître", {"connais", "connais", "connaît", "connaissons", "connaissent"}, "connu", "connaîtr"},
    {"courir", {"cours", "cours", "court", "courons", "courent"}, "couru", "courr"},
    {"devoir", {"dois", "dois", "doit", "devons", "doivent"}, "dû", "devr"},
    {"dire", {"dis", "dis", "dit", "disons", "disent"}, "dit", "dir"},
    {"dormir", {"dors", "dors", "dort", "dormons", "dorment"}, "dormi", "dormir"},
    {"écrire", {"écris", "écris", "écrit", "écrivons", "écrivent"}, "écrit", "écrir"},
    {"lire", {"lis", "lis", "lit", "lisons", "lisent"}, "lu", "lir"},
    {"ouvrir", {"ouvre", "ouvres", "ouvre", "ouvrons", "ouvrent"}, "ouvert", "ouvrir"},
    {"partir", {"pars", "pars", "part", "partons", "partent"}, "parti", "partir"},
    {"pouvoir", {"peux", "peux", "peut", "pouvons", "peuvent"}, "pu", "pourr"},
    {"prendre", {"prends", "prends", "prend", "prenons", "prennent"}, "pris", "prendr"},
    {"rire", {"ris", "ris", "rit", "rions", "rient"}, "ri", "rir"},
    {"savoir", {"sais", "sais", "sait", "savons", "savent"}, "su", "saur"},
    {"sortir", {"sors", "sors", "sort", "sortons", "sortent"}, "sorti", "sortir"},
    {"suivre", {"suis", "suis", "suit", "suivons", "suivent"}, "suivi", "suivr"},
    {"venir", {"viens", "viens", "vient", "venons", "viennent"}, "venu", "viendr"},
    {"voir", {"vois", "vois", "voit", "voyons", "voient"}, "vu", "verr"},
    {"vouloir", {"veux", "veux", "veut", "voulons", "veulent"}, "voulu", "voudr"},
};

/// Prefixes of verbs conjugated as the verb without: apprendre, comprendre, revenir, sourire.
constexpr std::string_view prefixes[] = {"", "ap", "com", "re", "sou"};

/// The irregular verb without its prefix, or null; sets the prefix.
const Irregular* find_irregular(std::string_view infinitive, std::string_view& prefix) {
  for (const std::string_view candidate : prefixes) {
    if (!infinitive.starts_with(candidate)) {
      continue;
    }
    for (const Irregular& verb : irregular_table) {
      if (infinitive.substr(candidate.size()) == verb.infinitive) {
        prefix = candidate;
        return &verb;
      }
    }
  }
  return nullptr;
}

bool is_consonant(char c) { return "bcdfghjklmnpqrstvwxz"sv.find(c) != std::string_view::npos; }

/// The stem of a verb in -er before a mute ending, and of its future: achèt, jett, nettoi.
std::string mute_stem(std::string_view infinitive, bool future) {
  std::string stem(infinitive.substr(0, infinitive.size() - 2));
  const std::size_t n = stem.size();
  if (infinitive == "jeter" || infinitive == "appeler") {
    return stem + stem.back();
  }
  if (stem.ends_with("oy") || stem.ends_with("uy")) {
    stem.back() = 'i';
    return stem;
  }
  if (n >= 2 && is_consonant(stem[n - 1]) && stem[n - 2] == 'e') {
    return stem.substr(0, n - 2) + "è" + stem[n - 1];
  }
  if (!future && n >= 3 && is_consonant(stem[n - 1]) && stem.substr(n - 3, 2) == "é") {
    return stem.substr(0, n - 3) + "è" + stem[n - 1];
  }
  return stem;
}

/// The stem before o and a, which keeps the sound of g and c: mange, commenç.
std::string hard_stem(std::string_view stem) {
  if (stem.ends_with('g')) {
    return std::string(stem) + "e";
  }
  return stem.ends_with('c') ? std::string(stem.substr(0, stem.size() - 1)) + "ç" : std::string(stem);
}

std::string regular_present(std::string_view infinitive, Person person) {
  const std::string_view stem = infinitive.substr(0, infinitive.size() - 2);
  const auto i = static_cast<std::size_t>(person);
  if (infinitive.ends_with("er")) {
    static constexpr std::array endings = {"e"sv, "es"sv, "e"sv, "ons"sv, "ent"sv};
    std::string base = person == Person::we ? hard_stem(stem) : mute_stem(infinitive, false);
    return base.append(endings[i]);
  }
  if (infinitive.ends_with("ir")) {
    static constexpr std::array endings = {"is"sv, "is"sv, "it"sv, "issons"sv, "issent"sv};
    return std::string(stem).append(endings[i]);
  }
  static constexpr std::array endings = {"s"sv, "s"sv, ""sv, "ons"sv, "ent"sv};
  return std::string(stem).append(endings[i]);
}

std::string present_form(std::string_view infinitive, Person person) {
  std::string_view prefix;
  if (const Irregular* verb = find_irregular(infinitive, prefix)) {
    return std::string(prefix).append(verb->present[static_cast<std::size_t>(person)]);
  }
  return regular_present(infinitive, person);
}

std::string imperfect(std::string_view infinitive, Person person) {
  static constexpr std::array endings = {"ais"sv, "ais"sv, "ait"sv, "ions"sv, "aient"sv};
  std::string stem = "ét";
  if (infinitive != "être") {
    stem = present_form(infinitive, Person::we);
    stem.resize(stem.size() - 3);  // without -ons
  }
  if (person == Person::we && infinitive.ends_with("ger")) {
    stem.pop_back();  // nous mangions, but il mangeait
  }
  return stem.append(endings[static_cast<std::size_t>(person)]);
}

std::string future(std::string_view infinitive, Person person) {
  static constexpr std::array endings = {"ai"sv, "as"sv, "a"sv, "ons"sv, "ont"sv};
  std::string_view prefix;
  std::string stem;
  if (const Irregular* verb = find_irregular(infinitive, prefix)) {
    stem = std::string(prefix).append(verb->future_stem);
  } else if (infinitive == "envoyer") {
    stem = "enverr";
  } else if (infinitive.ends_with("er")) {
    stem = mute_stem(infinitive, true) + "er";
  } else {
    stem = infinitive.substr(0, infinitive.size() - (infinitive.ends_with('e') ? 1 : 0));
  }
  return stem.append(endings[static_cast<std::size_t>(person)]);
}

/// Words before which le, je, que … are not elided although they begin with h or a vowel.
constexpr std::string_view aspirated[] = {"hibou", "hiboux", "huit", "haut", "haute", "onze", "oui"};

bool elides(std::string_view word) {
  static constexpr std::array words = {"=le"sv, "=la"sv, "le"sv, "la"sv, "je"sv, "ne"sv,
                                       "de"sv,  "que"sv, "se"sv, "me"sv, "te"sv};
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// "du" of "de" and "=le", and so on; empty if the two words stay as they are.
std::string_view contraction(std::string_view preposition, std::string_view article) {
  if (preposition == "de") {
    return article == "=le" ? "du"sv : article == "=les" ? "des"sv : ""sv;
  }
  if (preposition == "à") {
    return article == "=le" ? "au"sv : article == "=les" ? "aux"sv : ""sv;
  }
  return "";
}

void capitalize(std::string& text) {
  if (text.empty()) {
    return;
  }
  if (text[0] >= 'a' && text[0] <= 'z') {
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  } else if (text.starts_with("\xC3")) {  // à to þ: É is 32 before é
    text[1] = static_cast<char>(text[1] - 0x20);
  }
}

}  // namespace

std::string conjugate(std::string_view infinitive, SimpleTense tense, Person person) {
  switch (tense) {
    case SimpleTense::present:
      return present_form(infinitive, person);
    case SimpleTense::imperfect:
      return imperfect(infinitive, person);
    case SimpleTense::future:
      return future(infinitive, person);
  }
  rill::fail("conjugate: there is no such tense");
}

std::string participle(std::string_view infinitive, Gender gender, bool plural) {
  std::string_view prefix;
  std::string form;
  if (const Irregular* verb = find_irregular(infinitive, prefix)) {
    form = std::string(prefix).append(verb->participle);
  } else {
    form = infinitive.substr(0, infinitive.size() - 2);
    form += infinitive.ends_with("er") ? "é" : infinitive.ends_with("ir") ? "i" : "u";
  }
  if (gender == Gender::feminine) {
    return form + (plural ? "es" : "e");
  }
  return plural && !form.ends_with('s') ? form + "s" : form;
}

std::string plural(std::string_view singular) {
  const std::string base(singular);
  if (base.ends_with('s') || base.ends_with('x') || base.ends_with('z')) {
    return base;
  }
  if (base.ends_with("al")) {
    return base.substr(0, base.size() - 2) + "aux";
  }
  return base + (base.ends_with("eau") ? "x" : "s");
}

std::string noun(const Noun& noun, bool is_plural) {
  if (!is_plural) {
    return std::string(noun.french);
  }
  return noun.french_plural.empty() ? plural(noun.french) : std::string(noun.french_plural);
}

std::string adjective(const Adjective& adjective, Gender gender, bool is_plural, std::string_view next) {
  if (adjective.masculine.find(' ') != std::string_view::npos) {
    return std::string(adjective.masculine);  // en bois, bon marché
  }
  if (gender == Gender::feminine) {
    return std::string(adjective.feminine) + (is_plural ? "s" : "");
  }
  if (is_plural) {
    return plural(adjective.masculine);
  }
  const bool liaison = !adjective.masculine_before_vowel.empty() && begins_with_vowel(next);
  return std::string(liaison ? adjective.masculine_before_vowel : adjective.masculine);
}

bool begins_with_vowel(std::string_view word) {
  if (std::find(std::begin(aspirated), std::end(aspirated), word) != std::end(aspirated)) {
    return false;
  }
  static constexpr std::array beginnings = {"a"sv, "e"sv, "i"sv, "o"sv, "u"sv, "h"sv, "A"sv,
                                            "E"sv, "à"sv, "â"sv, "é"sv, "è"sv, "ê"sv, "É"sv,
                                            "î"sv, "ï"sv, "ô"sv, "œ"sv, "ù"sv};
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view v) { return word.starts_with(v); });
}

std::string sentence(const Words& words, char sign) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view next = i + 1 < words.size() ? std::string_view(words[i + 1]) : "";
    const std::string_view after = i + 2 < words.size() ? std::string_view(words[i + 2]) : "";
    std::string word = words[i];
    bool joined = false;
    const bool article_elides = elides(next) && begins_with_vowel(after);
    if (const auto both = contraction(word, next); !both.empty() && !(article_elides && next == "=le")) {
      word = both;
      ++i;
    } else if (elides(word) && begins_with_vowel(next)) {
      word.back() = '\'';
      joined = true;
    }
    if (word.starts_with('=')) {
      word.erase(0, 1);
    }
    if (word == ",") {
      text.pop_back();  // no space before it
    }
    text += word + (joined ? "" : " ");
  }
  text.pop_back();
  capitalize(text);
  const bool spaced = sign != '.';  // French spaces ? and !
  return text + (spaced ? " " : "") + sign;
}

}  // namespace translator::grammar::french
