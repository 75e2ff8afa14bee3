#include <parity/program.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <string>

#include <parity/run.h>
#include <rill/core/error.h>

namespace rill::parity {

int program(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  CLI::App app{"Replays a set of reference values: index.json and the safetensors files it names."};
  std::string directory;
  RunOptions options;
  app.add_option("directory", directory, "The folder of the set")->required();
  app.add_option("--filter", options.filter, "Replay only cases whose id contains this text");
  app.add_flag("--float32", options.float32, "Replay in float32, within the bounds the set gives for it");
  app.footer("Exit status: 0 when nothing failed, 1 when a case failed, 2 when the set cannot be read.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e, out, err) == 0 ? 0 : 2;
  }
  try {
    const bool passed = run(directory, options, out).failed == 0;
    if (!out.flush()) fail("standard output cannot be written");
    return passed ? 0 : 1;
  } catch (const std::exception& e) {
    err << "rill-parity: " << e.what() << '\n';
    return 2;
  }
}

}  // namespace rill::parity
