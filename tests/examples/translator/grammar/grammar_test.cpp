#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include <translator/grammar/clause.h>
#include <translator/grammar/english.h>
#include <translator/grammar/french.h>

namespace english = translator::grammar::english;
namespace french = translator::grammar::french;
using namespace translator::grammar;

namespace {

std::string forms(std::string_view infinitive, french::SimpleTense tense) {
  std::string all;
  for (const Person person : {Person::i, Person::you, Person::he, Person::we, Person::they}) {
    all += (all.empty() ? "" : " ") + french::conjugate(infinitive, tense, person);
  }
  return all;
}

const Noun& noun_called(std::string_view name) {
  for (const Noun& noun : nouns()) {
    if (noun.english == name) {
      return noun;
    }
  }
  FAIL("no noun " << name);
  return nouns()[0];
}

const Adjective& adjective_called(std::string_view name) {
  for (const Adjective& adjective : adjectives()) {
    if (adjective.english == name) {
      return adjective;
    }
  }
  FAIL("no adjective " << name);
  return adjectives()[0];
}

const Verb& verb_called(std::string_view name, std::string_view infinitive) {
  for (const Verb& verb : verbs()) {
    if (verb.english == name && verb.french == infinitive) {
      return verb;
    }
  }
  FAIL("no verb " << name);
  return verbs()[0];
}

Words words(std::string_view text) {
  Words all;
  append(all, text);
  return all;
}

const Phrase the_girl{{"the", "girl"}, {"=la", "fille"}, {Person::he, Gender::feminine}};
const Phrase we{{"we"}, {"nous"}, {Person::we}};

/// The statement of a subject and an action as "English | French".
std::string statement(const Phrase& subject, const Action& action) {
  return english::sentence(english_statement(subject, action), '.') + " | " +
         french::sentence(french_statement(subject, action), '.');
}

}  // namespace

TEST_CASE("grammar: the French present") {
  const std::map<std::string_view, std::string> present = {
      {"chanter", "chante chantes chante chantons chantent"},
      {"manger", "mange manges mange mangeons mangent"},
      {"lancer", "lance lances lance lançons lancent"},
      {"acheter", "achète achètes achète achetons achètent"},
      {"lever", "lève lèves lève levons lèvent"},
      {"appeler", "appelle appelles appelle appelons appellent"},
      {"jeter", "jette jettes jette jetons jettent"},
      {"espérer", "espère espères espère espérons espèrent"},
      {"envoyer", "envoie envoies envoie envoyons envoient"},
      {"nettoyer", "nettoie nettoies nettoie nettoyons nettoient"},
      {"chercher", "cherche cherches cherche cherchons cherchent"},
      {"oublier", "oublie oublies oublie oublions oublient"},
      {"réveiller", "réveille réveilles réveille réveillons réveillent"},
      {"prêter", "prête prêtes prête prêtons prêtent"},
      {"fermer", "ferme fermes ferme fermons ferment"},
      {"finir", "finis finis finit finissons finissent"},
      {"vendre", "vends vends vend vendons vendent"},
      {"être", "suis es est sommes sont"},
      {"avoir", "ai as a avons ont"},
      {"aller", "vais vas va allons vont"},
      {"revenir", "reviens reviens revient revenons reviennent"},
      {"apprendre", "apprends apprends apprend apprenons apprennent"},
      {"comprendre", "comprends comprends comprend comprenons comprennent"},
      {"sourire", "souris souris sourit sourions sourient"},
      {"ouvrir", "ouvre ouvres ouvre ouvrons ouvrent"},
      {"boire", "bois bois boit buvons boivent"},
      {"voir", "vois vois voit voyons voient"},
      {"connaître", "connais connais connaît connaissons connaissent"},
      {"dormir", "dors dors dort dormons dorment"},
      {"suivre", "suis suis suit suivons suivent"},
      {"devoir", "dois dois doit devons doivent"},
      {"pouvoir", "peux peux peut pouvons peuvent"},
      {"vouloir", "veux veux veut voulons veulent"}};
  for (const auto& [infinitive, expected] : present) {
    CHECK(forms(infinitive, french::SimpleTense::present) == expected);
  }
}

TEST_CASE("grammar: the French imperfect") {
  const std::map<std::string_view, std::string> imperfect = {
      {"chanter", "chantais chantais chantait chantions chantaient"},
      {"manger", "mangeais mangeais mangeait mangions mangeaient"},
      {"finir", "finissais finissais finissait finissions finissaient"},
      {"vendre", "vendais vendais vendait vendions vendaient"},
      {"être", "étais étais était étions étaient"},
      {"avoir", "avais avais avait avions avaient"},
      {"boire", "buvais buvais buvait buvions buvaient"},
      {"écrire", "écrivais écrivais écrivait écrivions écrivaient"},
      {"prendre", "prenais prenais prenait prenions prenaient"},
      {"acheter", "achetais achetais achetait achetions achetaient"},
      {"rire", "riais riais riait riions riaient"}};
  for (const auto& [infinitive, expected] : imperfect) {
    CHECK(forms(infinitive, french::SimpleTense::imperfect) == expected);
  }
}

TEST_CASE("grammar: the French future") {
  const std::map<std::string_view, std::string> future = {
      {"chanter", "chanterai chanteras chantera chanterons chanteront"},
      {"acheter", "achèterai achèteras achètera achèterons achèteront"},
      {"appeler", "appellerai appelleras appellera appellerons appelleront"},
      {"espérer", "espérerai espéreras espérera espérerons espéreront"},
      {"envoyer", "enverrai enverras enverra enverrons enverront"},
      {"nettoyer", "nettoierai nettoieras nettoiera nettoierons nettoieront"},
      {"finir", "finirai finiras finira finirons finiront"},
      {"vendre", "vendrai vendras vendra vendrons vendront"},
      {"être", "serai seras sera serons seront"},
      {"aller", "irai iras ira irons iront"},
      {"revenir", "reviendrai reviendras reviendra reviendrons reviendront"},
      {"voir", "verrai verras verra verrons verront"},
      {"courir", "courrai courras courra courrons courront"}};
  for (const auto& [infinitive, expected] : future) {
    CHECK(forms(infinitive, french::SimpleTense::future) == expected);
  }
}

TEST_CASE("grammar: participles agree") {
  const auto all = [](std::string_view infinitive) {
    std::string text;
    for (const Gender gender : {Gender::masculine, Gender::feminine}) {
      for (const bool plural : {false, true}) {
        text += (text.empty() ? "" : " ") + french::participle(infinitive, gender, plural);
      }
    }
    return text;
  };
  CHECK(all("manger") == "mangé mangés mangée mangées");
  CHECK(all("prendre") == "pris pris prise prises");
  CHECK(all("écrire") == "écrit écrits écrite écrites");
  CHECK(all("ouvrir") == "ouvert ouverts ouverte ouvertes");
  CHECK(all("choisir") == "choisi choisis choisie choisies");
  CHECK(all("perdre") == "perdu perdus perdue perdues");
  CHECK(all("revenir") == "revenu revenus revenue revenues");
}

TEST_CASE("grammar: nouns and adjectives inflect") {
  CHECK(french::noun(noun_called("horse"), true) == "chevaux");
  CHECK(french::noun(noun_called("newspaper"), true) == "journaux");
  CHECK(french::noun(noun_called("knife"), true) == "couteaux");
  CHECK(french::noun(noun_called("mouse"), true) == "souris");
  CHECK(french::noun(noun_called("owl"), true) == "hiboux");
  CHECK(french::noun(noun_called("potato"), true) == "pommes de terre");
  CHECK(english::noun(noun_called("mouse"), true) == "mice");
  CHECK(english::noun(noun_called("box"), true) == "boxes");
  CHECK(english::noun(noun_called("cherry"), true) == "cherries");
  CHECK(english::noun(noun_called("donkey"), true) == "donkeys");
  CHECK(english::noun(noun_called("church"), true) == "churches");

  const auto all = [](std::string_view name) {
    const Adjective& adjective = adjective_called(name);
    return french::adjective(adjective, Gender::masculine, false) + " " +
           french::adjective(adjective, Gender::masculine, true) + " " +
           french::adjective(adjective, Gender::feminine, false) + " " +
           french::adjective(adjective, Gender::feminine, true);
  };
  CHECK(all("beautiful") == "beau beaux belle belles");
  CHECK(all("old") == "vieux vieux vieille vieilles");
  CHECK(all("happy") == "heureux heureux heureuse heureuses");
  CHECK(all("fresh") == "frais frais fraîche fraîches");
  CHECK(all("white") == "blanc blancs blanche blanches");
  CHECK(all("wooden") == "en bois en bois en bois en bois");
  CHECK(french::adjective(adjective_called("old"), Gender::masculine, false, "homme") == "vieil");
  CHECK(french::adjective(adjective_called("old"), Gender::masculine, false, "hibou") == "vieux");
  CHECK(french::adjective(adjective_called("new"), Gender::masculine, false, "hôtel") == "nouvel");
  CHECK(french::adjective(adjective_called("old"), Gender::masculine, true, "hommes") == "vieux");
}

TEST_CASE("grammar: elision and contraction") {
  const auto written = [](std::string_view text) { return french::sentence(words(text), '.'); };
  CHECK(written("=la école de =le homme") == "L'école de l'homme.");
  CHECK(written("à =le marché de =les rois") == "Au marché des rois.");
  CHECK(written("à =les îles de =la mer") == "Aux îles de la mer.");
  CHECK(written("près de =le vieux hibou") == "Près du vieux hibou.");
  CHECK(written("je ne ai pas de eau") == "Je n'ai pas d'eau.");
  CHECK(written("il a envie de le voir") == "Il a envie de le voir.");  // a pronoun is not contracted
  CHECK(written("je le aide") == "Je l'aide.");
  CHECK(written("parce que elle se habille") == "Parce qu'elle s'habille.");
  CHECK(written("je te écoute") == "Je t'écoute.");
  CHECK(written("=le hibou") == "Le hibou.");
  CHECK(written("hier , il dort") == "Hier, il dort.");
  CHECK(written("école") == "École.");
  CHECK(french::sentence(words("où est =la clé"), '?') == "Où est la clé ?");
  CHECK(english::sentence(words("a owl and a big apple , a egg"), '?') == "An owl and a big apple, an egg?");
}

TEST_CASE("grammar: English verbs") {
  CHECK(english::third_person("go") == "goes");
  CHECK(english::third_person("carry") == "carries");
  CHECK(english::third_person("play") == "plays");
  CHECK(english::third_person("watch") == "watches");
  CHECK(english::third_person("have") == "has");
  CHECK(english::past(verb_called("cry", "pleurer")) == "cried");
  CHECK(english::past(verb_called("play", "jouer")) == "played");
  CHECK(english::past(verb_called("arrive", "arriver")) == "arrived");
  CHECK(english::past(verb_called("eat", "manger")) == "ate");
  CHECK(english::ing(verb_called("take", "prendre")) == "taking");
  CHECK(english::ing(verb_called("see", "voir")) == "seeing");
  CHECK(english::ing(verb_called("run", "courir")) == "running");
  CHECK(english::ing(verb_called("cry", "pleurer")) == "crying");
}

TEST_CASE("grammar: tenses and negation in both languages") {
  Action read{.verb = &verb_called("read", "lire"),
              .english_rest = words("a book"),
              .french_rest = words("un livre")};
  const auto in = [&](Tense tense, Polarity polarity = Polarity::affirmative) {
    read.tense = tense;
    read.polarity = polarity;
    return statement(the_girl, read);
  };
  CHECK(in(Tense::present) == "The girl reads a book. | La fille lit un livre.");
  CHECK(in(Tense::progressive) == "The girl is reading a book. | La fille est en train de lire un livre.");
  CHECK(in(Tense::past) == "The girl read a book. | La fille a lu un livre.");
  CHECK(in(Tense::imperfect) == "The girl was reading a book. | La fille lisait un livre.");
  CHECK(in(Tense::future) == "The girl will read a book. | La fille lira un livre.");
  CHECK(in(Tense::near_future) == "The girl is going to read a book. | La fille va lire un livre.");
  CHECK(in(Tense::can) == "The girl can read a book. | La fille peut lire un livre.");
  CHECK(in(Tense::must) == "The girl must read a book. | La fille doit lire un livre.");
  CHECK(in(Tense::want) == "The girl wants to read a book. | La fille veut lire un livre.");
  read.french_rest = words("de livre");
  const auto no = Polarity::negative;
  CHECK(in(Tense::present, no) == "The girl does not read a book. | La fille ne lit pas de livre.");
  CHECK(in(Tense::past, no) == "The girl did not read a book. | La fille n'a pas lu de livre.");
  CHECK(in(Tense::can, no) == "The girl cannot read a book. | La fille ne peut pas lire de livre.");
  CHECK(in(Tense::want, no) ==
        "The girl does not want to read a book. | La fille ne veut pas lire de livre.");
  CHECK(in(Tense::present, Polarity::never) ==
        "The girl never reads a book. | La fille ne lit jamais de livre.");
  CHECK(in(Tense::can, Polarity::no_longer) ==
        "The girl can no longer read a book. | La fille ne peut plus lire de livre.");
}

TEST_CASE("grammar: pronouns, reflexives and agreement of the participle") {
  const Verb& help = verb_called("help", "aider");
  const Action helped{.verb = &help,
                      .tense = Tense::past,
                      .polarity = Polarity::negative,
                      .english_rest = {"them"},
                      .pronouns = {"les"},
                      .object_before = Agreement{Person::they}};
  CHECK(statement(we, helped) == "We did not help them. | Nous ne les avons pas aidés.");
  Action get_up{.verb = &verb_called("get", "lever"), .tense = Tense::past};
  CHECK(statement(the_girl, get_up) == "The girl got up. | La fille s'est levée.");
  get_up.tense = Tense::near_future;
  CHECK(statement(we, get_up) == "We are going to get up. | Nous allons nous lever.");
  const Action went{.verb = &verb_called("go", "sortir"), .tense = Tense::past};
  CHECK(statement(we, went) == "We went out. | Nous sommes sortis.");
  const Action hungry{.verb = &be_avoir,
                      .tense = Tense::imperfect,
                      .polarity = Polarity::no_longer,
                      .english_rest = {"hungry"},
                      .french_rest = {"faim"}};
  CHECK(statement(the_girl, hungry) == "The girl was no longer hungry. | La fille n'avait plus faim.");
  const Action need{
      .verb = &verb_called("need", "avoir"), .english_rest = {"it"}, .french_rest = words("de =le sac")};
  CHECK(statement(we, need) == "We need it. | Nous avons besoin du sac.");
}

TEST_CASE("grammar: commands") {
  const auto both = [](const Verb& verb, Polarity polarity) {
    const Action action{.verb = &verb, .polarity = polarity};
    return english::sentence(english_command(action), '!') + " | " +
           french::sentence(french_command(action), '!');
  };
  CHECK(both(verb_called("eat", "manger"), Polarity::affirmative) == "Eat! | Mange !");
  CHECK(both(verb_called("open", "ouvrir"), Polarity::negative) == "Do not open! | N'ouvre pas !");
  CHECK(both(verb_called("go", "aller"), Polarity::affirmative) == "Go! | Va !");
  CHECK(both(verb_called("write", "écrire"), Polarity::affirmative) == "Write! | Écris !");
  CHECK(both(verb_called("get", "lever"), Polarity::affirmative) == "Get up! | Lève-toi !");
  CHECK(both(verb_called("get", "habiller"), Polarity::negative) ==
        "Do not get dressed! | Ne t'habille pas !");
  const Action rest{.verb = &verb_called("rest", "reposer")};
  CHECK(english::sentence(english_proposal(rest), '.') == "Let us rest.");
  CHECK(french::sentence(french_proposal(rest), '.') == "Reposons-nous.");
}

TEST_CASE("grammar: every noun has an adjective, every verb a subject, object and place") {
  for (const Noun& noun : nouns()) {
    bool found = false;
    for (const Adjective& adjective : adjectives()) {
      found = found || (adjective.kinds & noun.kinds) != 0;
    }
    CHECK_MESSAGE(found, noun.english);
  }
  for (const Verb& verb : verbs()) {
    CHECK_MESSAGE(verb.subjects != 0, verb.english);
    for (const Kinds kinds : {verb.subjects, verb.objects, verb.places}) {
      bool found = kinds == 0;
      for (const Noun& noun : nouns()) {
        found = found || (noun.kinds & kinds) != 0;
      }
      CHECK_MESSAGE(found, verb.english);
    }
  }
}
