/// rill-parity: replays a set of reference values and says where rill differs from it.

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <string>

#include <parity/run.h>

int main(int argc, char** argv) {
  CLI::App app{"Replays a set of reference values: index.json and the safetensors files it names."};
  std::string directory;
  rill::parity::RunOptions options;
  app.add_option("directory", directory, "The folder of the set")->required();
  app.add_option("--filter", options.filter, "Replay only cases whose id contains this text");
  app.add_flag("--float32", options.float32, "Replay in float32, within the bounds the set gives for it");
  app.footer("Exit status: 0 when nothing failed, 1 when a case failed, 2 when the set cannot be read.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    return rill::parity::run(directory, options, std::cout).failed == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << "rill-parity: " << e.what() << '\n';
    return 2;
  }
}
