#include <translator/grammar/lexicon.h>

namespace translator::grammar {
namespace {

using namespace kind;
using namespace use;

constexpr Kinds goods = thing | clothes | vehicle | furniture;

// English base form, irregular past and -ing form, particle; French infinitive; kinds of subjects and
// objects; uses, places; English and French preposition before the object, French word after the verb.
constexpr Verb verb_table[] = {
    // With a place at most.
    {"sleep", "slept", "", "", "dormir", being, 0, lasting | well, home | outdoors},
    {"run", "ran", "running", "", "courir", being, 0, lasting | quickly, outdoors},
    {"walk", "", "", "", "marcher", being, 0, lasting | slowly | quickly, outdoors},
    {"swim", "swam", "swimming", "", "nager", person, 0, lasting | well, water},
    {"work", "", "", "", "travailler", adult, 0, lasting | a_lot | well, building},
    {"play", "", "", "", "jouer", child | animal, 0, lasting | a_lot, home | outdoors},
    {"sing", "sang", "", "", "chanter", person, 0, lasting | well, home},
    {"dance", "", "", "", "danser", person, 0, lasting | well, outdoors},
    {"laugh", "", "", "", "rire", person, 0, lasting | a_lot},
    {"cry", "", "", "", "pleurer", person, 0, lasting | a_lot},
    {"wait", "", "", "", "attendre", person, 0, lasting, building},
    {"live", "", "", "", "habiter", person, 0, lasting | needs_place, dwelling},
    {"stay", "", "", "", "rester", person, 0, with_etre | needs_place, home | building},
    {"fall", "fell", "", "", "tomber", being, 0, accident | with_etre | interrupts, outdoors},
    {"leave", "left", "", "", "partir", person | vehicle, 0, with_etre | interrupts},
    {"go", "went", "", "out", "sortir", being, 0, with_etre | interrupts},
    {"go", "went", "", "home", "rentrer", person, 0, with_etre},
    {"get", "got", "getting", "up", "lever", person, 0, reflexive | interrupts},
    {"wake", "woke", "", "up", "réveiller", being, 0, reflexive | interrupts},
    {"get", "got", "getting", "dressed", "habiller", person, 0, reflexive | lasting},
    {"rest", "", "", "", "reposer", being, 0, reflexive | lasting, home},
    {"hurry", "", "", "", "dépêcher", person, 0, reflexive},
    {"stop", "stopped", "stopping", "", "arrêter", person | vehicle, 0, reflexive | interrupts},

    // To or from a place.
    {"go", "went", "", "", "aller", person, destination, with_etre, 0, "to", "à"},
    {"arrive", "", "", "", "arriver", person, building, with_etre | interrupts, 0, "at", "à"},
    {"come", "came", "", "back", "revenir", person, destination, with_etre | interrupts, 0, "from", "de"},

    // With an object.
    {"eat", "ate", "", "", "manger", person, food, lasting | disposes, home},
    {"eat", "ate", "", "", "manger", grazer, fodder, lasting},
    {"eat", "ate", "", "", "manger", hunter, prey, lasting},
    {"drink", "drank", "", "", "boire", person, drink, lasting | disposes, home},
    {"prepare", "", "", "", "préparer", adult, food | drink, lasting, home},
    {"cut", "cut", "cutting", "", "couper", adult, food, lasting | disposes},
    {"read", "read", "", "", "lire", person, text, lasting | disposes, home},
    {"write", "wrote", "writing", "", "écrire", person, text, lasting},
    {"finish", "", "", "", "finir", person, text | lesson},
    {"learn", "", "", "", "apprendre", child, lesson, lasting},
    {"understand", "understood", "", "", "comprendre", person, text | lesson, state},
    {"listen", "", "", "", "écouter", person, sound | person, lasting, 0, "to"},
    {"look", "", "", "", "regarder", being, being | plant | goods, lasting, 0, "at"},
    {"look", "", "", "", "chercher", person, being | goods | container | text, lasting, 0, "for"},
    {"wait", "", "", "", "attendre", person, person | vehicle, lasting, building, "for"},
    {"see", "saw", "", "", "voir", being, being | vehicle | plant, accident, outdoors},
    {"hear", "heard", "", "", "entendre", being, being | vehicle | sound, accident},
    {"find", "found", "", "", "trouver", person, animal | thing | clothes | text, acquires, outdoors},
    {"lose", "lost", "losing", "", "perdre", person, animal | thing | clothes | text, accident, outdoors},
    {"forget", "forgot", "forgetting", "", "oublier", person, thing | clothes | lesson, accident | disposes},
    {"buy", "bought", "", "", "acheter", adult, food | drink | goods | text | animal, lasting | acquires},
    {"sell", "sold", "", "", "vendre", adult, food | goods | text | animal, lasting | disposes},
    {"choose", "chose", "choosing", "", "choisir", person, food | drink | goods | text | animal, acquires},
    {"take", "took", "taking", "", "prendre", person, food | thing | clothes | text, acquires},
    {"steal", "stole", "", "", "voler", adult, food | thing | clothes | vehicle, acquires},
    {"hide", "hid", "hiding", "", "cacher", person, thing | text | food, lasting | disposes},
    {"carry", "", "", "", "porter", person, thing | furniture, lasting},
    {"wear", "wore", "", "", "porter", person, clothes, lasting | disposes},
    {"open", "", "", "", "ouvrir", person, opening, lasting | disposes},
    {"close", "", "", "", "fermer", person, opening, lasting},
    {"wash", "", "", "", "laver", person, washable, lasting | disposes},
    {"break", "broke", "", "", "casser", person, fragile, accident | disposes},
    {"repair", "", "", "", "réparer", adult, mendable, lasting | disposes},
    {"draw", "drew", "", "", "dessiner", person, being | plant | building | vehicle, lasting},
    {"plant", "", "", "", "planter", adult, plant, lasting},
    {"throw", "threw", "", "", "lancer", person, toy, disposes},
    {"help", "", "", "", "aider", person, person, lasting | a_lot},
    {"call", "", "", "", "appeler", person, being},
    {"thank", "", "", "", "remercier", person, person},
    {"meet", "met", "meeting", "", "rencontrer", person, person, accident, outdoors},
    {"follow", "", "", "", "suivre", being, being, lasting},
    {"feed", "fed", "", "", "nourrir", person, animal, lasting | well},
    {"visit", "", "", "", "visiter", person, building | dwelling, lasting},
    {"speak", "spoke", "", "", "parler", person, person, lasting, 0, "to", "à"},
    {"answer", "", "", "", "répondre", person, person, 0, 0, "", "à"},
    {"smile", "", "", "", "sourire", person, person, lasting, 0, "at", "à"},
    {"play", "", "", "", "jouer", child, toy | animal, lasting, 0, "with", "avec"},

    // With a recipient.
    {"give", "gave", "giving", "", "donner", person, thing | clothes | food | text, to_someone},
    {"show", "", "", "", "montrer", person, thing | clothes | text | animal, to_someone},
    {"lend", "lent", "", "", "prêter", person, thing | clothes | text, to_someone},
    {"send", "sent", "", "", "envoyer", person, text | clothes, to_someone},

    // States.
    {"know", "", "", "", "connaître", person, person | building | sound, state | well},
    {"like", "", "", "", "aimer", person, food | drink | animal | plant, state | generic},
    {"love", "", "", "", "adorer", person, food | drink | animal | plant, state | generic},
    {"have", "", "", "", "avoir", person, thing | clothes | vehicle | animal, state},
    {"need", "", "", "", "avoir", person, thing | clothes | vehicle, state, 0, "", "de", "besoin"},
};

}  // namespace

std::span<const Verb> verbs() { return verb_table; }

}  // namespace translator::grammar
