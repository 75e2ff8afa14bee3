#include <translator/grammar/lexicon.h>

namespace translator::grammar {
namespace {

using namespace kind;

constexpr Kinds goods = thing | clothes | vehicle | furniture | opening;
constexpr Kinds sight = home | outdoors | building;

constexpr Adjective adjective_table[] = {
    // Before the French noun.
    {"small", "smaller", "petit", "petite", child | animal | goods | container | plant | sight, true},
    {"big", "bigger", "grand", "grande", child | animal | goods | container | plant | sight | water, true},
    {"old", "older", "vieux", "vieille", adult | animal | goods | container | text | sight | plant, true,
     "vieil"},
    {"young", "younger", "jeune", "jeune", adult | animal, true},
    {"new", "-", "nouveau", "nouvelle", goods | container | text | building | lesson, true, "nouvel"},
    {"beautiful", "", "beau", "belle", goods | animal | plant | sight | water | sound, true, "bel"},
    {"pretty", "prettier", "joli", "jolie", thing | clothes | plant | home | sound, true},
    {"good", "-", "bon", "bonne", food | drink | text, true},
    {"bad", "-", "mauvais", "mauvaise", food | drink | text, true},
    {"long", "longer", "long", "longue", text | lesson, true},
    {"fat", "fatter", "gros", "grosse", animal, true},

    // Behind it: colours,
    {"red", "-", "rouge", "rouge", goods | container},
    {"blue", "-", "bleu", "bleue", goods | container},
    {"green", "-", "vert", "verte", goods | container},
    {"white", "-", "blanc", "blanche", goods | container | animal | home},
    {"black", "-", "noir", "noire", goods | container | animal},
    {"yellow", "-", "jaune", "jaune", goods | container | plant},
    {"grey", "-", "gris", "grise", clothes | animal | vehicle},

    // people and animals,
    {"happy", "happier", "heureux", "heureuse", person},
    {"sad", "sadder", "triste", "triste", person | sound | text},
    {"tired", "", "fatigué", "fatiguée", being},
    {"sick", "-", "malade", "malade", being},
    {"strong", "stronger", "fort", "forte", person | animal},
    {"kind", "kinder", "gentil", "gentille", person},
    {"polite", "", "poli", "polie", person},
    {"lazy", "lazier", "paresseux", "paresseuse", being},
    {"rich", "richer", "riche", "riche", adult},
    {"poor", "poorer", "pauvre", "pauvre", adult},
    {"famous", "", "célèbre", "célèbre", adult | text | building},
    {"brave", "braver", "courageux", "courageuse", person | animal},
    {"angry", "-", "en colère", "en colère", person},
    {"wild", "-", "sauvage", "sauvage", animal | plant},
    {"dangerous", "", "dangereux", "dangereuse", hunter | outdoors},

    // things and places.
    {"hot", "hotter", "chaud", "chaude", food | drink},
    {"cold", "colder", "froid", "froide", food | drink | water},
    {"fresh", "-", "frais", "fraîche", food},
    {"sweet", "-", "sucré", "sucrée", food | drink},
    {"expensive", "", "cher", "chère", goods | food},
    {"cheap", "-", "bon marché", "bon marché", goods},
    {"wooden", "-", "en bois", "en bois", furniture | container | toy},
    {"heavy", "heavier", "lourd", "lourde", container | furniture},
    {"empty", "-", "vide", "vide", container | building},
    {"dirty", "dirtier", "sale", "sale", clothes | vehicle | furniture | washable},
    {"broken", "-", "cassé", "cassée", fragile | toy},
    {"round", "-", "rond", "ronde", furniture | container | fragile},
    {"fast", "faster", "rapide", "rapide", vehicle},
    {"funny", "funnier", "drôle", "drôle", text | sound},
    {"interesting", "", "intéressant", "intéressante", text | lesson},
    {"difficult", "", "difficile", "difficile", text | lesson},
    {"short", "shorter", "court", "courte", text | lesson},
    {"quiet", "quieter", "calme", "calme", sight},
    {"deep", "deeper", "profond", "profonde", water},
    {"wide", "wider", "large", "large", water},
};

}  // namespace

std::span<const Adjective> adjectives() { return adjective_table; }

}  // namespace translator::grammar
