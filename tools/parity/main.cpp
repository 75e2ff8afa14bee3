/// rill-parity: replays a set of reference values and says where rill differs from it.

#include <iostream>

#include <parity/program.h>

int main(int argc, char** argv) { return rill::parity::program(argc, argv, std::cout, std::cerr); }
