#include <translator/grammar/lexicon.h>

namespace translator::grammar {
namespace {

using namespace kind;

constexpr Gender m = Gender::masculine;
constexpr Gender f = Gender::feminine;

constexpr Noun noun_table[] = {
    // People.
    {"man", "men", "homme", "", m, adult | free},
    {"woman", "women", "femme", "", f, adult | free},
    {"teacher", "", "professeur", "", m, adult},
    {"doctor", "", "médecin", "", m, adult},
    {"farmer", "", "fermier", "", m, adult},
    {"baker", "", "boulanger", "", m, adult},
    {"nurse", "", "infirmière", "", f, adult},
    {"singer", "", "chanteuse", "", f, adult},
    {"painter", "", "peintre", "", m, adult},
    {"king", "", "roi", "", m, adult | single | free},
    {"queen", "", "reine", "", f, adult | single | free},
    {"neighbour", "", "voisin", "", m, adult},
    {"friend", "", "ami", "", m, adult | relative},
    {"uncle", "", "oncle", "", m, adult | relative},
    {"aunt", "", "tante", "", f, adult | relative},
    {"mother", "", "mère", "", f, adult | single | relative},
    {"father", "", "père", "", m, adult | single | relative},
    {"sister", "", "sœur", "", f, person | relative},
    {"brother", "", "frère", "", m, person | relative},
    {"student", "", "étudiant", "", m, adult},
    {"cook", "", "cuisinier", "", m, adult},
    {"gardener", "", "jardinier", "", m, adult},
    {"actress", "", "actrice", "", f, adult},
    {"lawyer", "", "avocat", "", m, adult},
    {"boy", "", "garçon", "", m, child},
    {"girl", "", "fille", "", f, child},
    {"child", "children", "enfant", "", m, child},
    {"pupil", "", "élève", "", m, child},

    // Animals.
    {"dog", "", "chien", "", m, hunter},
    {"cat", "", "chat", "", m, hunter},
    {"fox", "", "renard", "", m, hunter},
    {"bear", "", "ours", "", m, hunter},
    {"owl", "", "hibou", "hiboux", m, hunter},
    {"horse", "", "cheval", "", m, grazer},
    {"cow", "", "vache", "", f, grazer},
    {"goat", "", "chèvre", "", f, grazer},
    {"donkey", "", "âne", "", m, grazer},
    {"rabbit", "", "lapin", "", m, grazer},
    {"mouse", "mice", "souris", "", f, grazer},
    {"hen", "", "poule", "", f, grazer},
    {"monkey", "", "singe", "", m, grazer},

    // Food and drink.
    {"apple", "", "pomme", "", f, food | fodder | washable},
    {"pear", "", "poire", "", f, food | fodder | washable},
    {"cherry", "", "cerise", "", f, food | fodder | washable},
    {"strawberry", "", "fraise", "", f, food | washable},
    {"orange", "", "orange", "", f, food},
    {"carrot", "", "carotte", "", f, food | fodder | washable},
    {"potato", "potatoes", "pomme de terre", "pommes de terre", f, food | fodder | washable},
    {"egg", "", "œuf", "", m, food | prey},
    {"cake", "", "gâteau", "", m, food},
    {"sandwich", "", "sandwich", "", m, food},
    {"bread", "", "pain", "", m, food | fodder | mass},
    {"cheese", "", "fromage", "", m, food | prey | mass},
    {"meat", "", "viande", "", f, food | prey | mass},
    {"ham", "", "jambon", "", m, food | prey | mass},
    {"soup", "", "soupe", "", f, food | mass},
    {"rice", "", "riz", "", m, food | mass},
    {"chocolate", "", "chocolat", "", m, food | mass},
    {"water", "", "eau", "", f, drink | mass},
    {"milk", "", "lait", "", m, drink | mass},
    {"coffee", "", "café", "", m, drink | mass},
    {"tea", "", "thé", "", m, drink | mass},

    // Things to read, learn and listen to.
    {"book", "", "livre", "", m, text},
    {"letter", "", "lettre", "", f, text},
    {"newspaper", "", "journal", "", m, text},
    {"story", "", "histoire", "", f, text | sound},
    {"poem", "", "poème", "", m, text | lesson | sound},
    {"novel", "", "roman", "", m, text},
    {"lesson", "", "leçon", "", f, lesson},
    {"song", "", "chanson", "", f, lesson | sound},

    // Things.
    {"key", "", "clé", "", f, thing},
    {"umbrella", "", "parapluie", "", m, thing | mendable},
    {"pen", "", "stylo", "", m, thing},
    {"lamp", "", "lampe", "", f, thing | fragile | mendable},
    {"knife", "knives", "couteau", "", m, thing | washable},
    {"plate", "", "assiette", "", f, thing | fragile | washable},
    {"cup", "", "tasse", "", f, thing | fragile | washable},
    {"glass", "", "verre", "", m, thing | fragile | washable},
    {"clock", "", "horloge", "", f, thing | fragile | mendable},
    {"ring", "", "bague", "", f, thing},
    {"mirror", "", "miroir", "", m, thing | fragile},
    {"picture", "", "tableau", "", m, thing},
    {"ball", "", "ballon", "", m, thing | toy},
    {"doll", "", "poupée", "", f, thing | toy},
    {"box", "", "boîte", "", f, thing | container | opening},
    {"bag", "", "sac", "", m, thing | container | opening},
    {"suitcase", "", "valise", "", f, thing | container | opening},
    {"basket", "", "panier", "", m, thing | container},
    {"drawer", "", "tiroir", "", m, container | opening},
    {"wardrobe", "", "armoire", "", f, container | opening},
    {"door", "", "porte", "", f, opening | mendable},
    {"window", "", "fenêtre", "", f, opening | fragile | washable},
    {"table", "", "table", "", f, furniture | mendable},
    {"chair", "", "chaise", "", f, furniture | mendable},
    {"bed", "", "lit", "", m, furniture},
    {"shelf", "shelves", "étagère", "", f, furniture},
    {"desk", "", "bureau", "", m, furniture},
    {"hat", "", "chapeau", "", m, clothes},
    {"coat", "", "manteau", "", m, clothes | washable},
    {"shirt", "", "chemise", "", f, clothes | washable},
    {"dress", "", "robe", "", f, clothes | washable},
    {"scarf", "scarves", "écharpe", "", f, clothes | washable},
    {"shoe", "", "chaussure", "", f, clothes},
    {"car", "", "voiture", "", f, vehicle | mendable | washable},
    {"bicycle", "", "vélo", "", m, vehicle | mendable},
    {"boat", "", "bateau", "", m, vehicle | mendable},
    {"truck", "", "camion", "", m, vehicle | mendable | washable},
    {"train", "", "train", "", m, vehicle},
    {"tree", "", "arbre", "", m, plant},
    {"flower", "", "fleur", "", f, plant},
    {"rose", "", "rose", "", f, plant},

    // Places.
    {"house", "", "maison", "", f, home | dwelling},
    {"garden", "", "jardin", "", m, home},
    {"kitchen", "", "cuisine", "", f, home},
    {"bedroom", "", "chambre", "", f, home},
    {"village", "", "village", "", m, outdoors | dwelling | destination},
    {"forest", "", "forêt", "", f, outdoors | dwelling | free},
    {"park", "", "parc", "", m, outdoors | destination},
    {"street", "", "rue", "", f, outdoors},
    {"field", "", "champ", "", m, outdoors},
    {"beach", "", "plage", "", f, outdoors | destination | free, "on", "sur"},
    {"island", "", "île", "", f, outdoors | dwelling | free, "on", "sur"},
    {"farm", "", "ferme", "", f, building | dwelling | destination, "at", "à"},
    {"market", "", "marché", "", m, building | destination | free, "at", "à"},
    {"school", "", "école", "", f, building | destination, "at", "à"},
    {"station", "", "gare", "", f, building | destination | free, "at", "à"},
    {"church", "", "église", "", f, building | destination, "at", "à"},
    {"library", "", "bibliothèque", "", f, building | destination, "at", "à"},
    {"museum", "", "musée", "", m, building | destination, "at", "à"},
    {"hospital", "", "hôpital", "", m, building | destination, "at", "à"},
    {"hotel", "", "hôtel", "", m, building | destination, "at", "à"},
    {"castle", "", "château", "", m, building | destination | dwelling, "at", "à"},
    {"river", "", "rivière", "", f, water | free},
    {"lake", "", "lac", "", m, water | free},
    {"sea", "", "mer", "", f, water | single | free},
};

constexpr Name name_table[] = {{"Paul", m}, {"Marc", m}, {"Thomas", m}, {"Antoine", m},
                               {"Anna", f}, {"Emma", f}, {"Julie", f},  {"Claire", f}};

constexpr Idiom number_table[] = {{"two", "deux"}, {"three", "trois"},  {"four", "quatre"}, {"five", "cinq"},
                                  {"six", "six"},  {"seven", "sept"},   {"eight", "huit"},  {"nine", "neuf"},
                                  {"ten", "dix"},  {"twelve", "douze"}, {"twenty", "vingt"}};

}  // namespace

std::span<const Noun> nouns() { return noun_table; }
std::span<const Name> names() { return name_table; }
std::span<const Idiom> numbers() { return number_table; }

}  // namespace translator::grammar
