/// The translator's command line.
///
///   translator train      learns to translate from sentence pairs
///   translator translate  translates lines
///   translator evaluate   scores a model on pairs
///   translator attention  draws the attention of a translation
///   translator corpus     writes the embedded data
#pragma once

namespace translator {

/// Parses the command line and runs the command. Returns the program's exit code: 0, 1 for an error (one line
/// on standard error), 2 for a wrong command line, 130 when training was interrupted.
int run_command_line(int argc, char** argv);

}  // namespace translator
