/// The program rill-parity as a function.
#pragma once

#include <ostream>

namespace rill::parity {

/// Runs it with these arguments. Returns the exit status: 0 when nothing failed, 1 when a case failed, 2 when
/// the arguments are wrong or the set cannot be read.
int program(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace rill::parity
