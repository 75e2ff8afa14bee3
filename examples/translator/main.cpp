// The translator: see cli/command_line.h.
#include <translator/cli/command_line.h>

int main(int argc, char** argv) { return translator::run_command_line(argc, argv); }
