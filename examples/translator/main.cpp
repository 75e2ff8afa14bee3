// The translator: see commands.h.
#include <translator/cli/commands.h>

int main(int argc, char** argv) { return translator::run(argc, argv); }
