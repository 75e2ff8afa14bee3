/// The table of ops: from the names of the reference sets to the functions of rill.
#pragma once

#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include <parity/call.h>

namespace rill::parity {

struct Op {
  /// The names of its arguments in the order in which an expression gives them.
  std::vector<std::string_view> parameters;
  std::function<NamedTensors(Call&)> run;
};

using OpTable = std::map<std::string_view, Op>;

/// The op of that name, or nullptr.
const Op* find_op(std::string_view name);

/// The families that have files of their own.
void add_reductions(OpTable& table);
void add_losses(OpTable& table);

}  // namespace rill::parity
