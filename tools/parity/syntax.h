/// Syntax trees of the expression language, and the parser that makes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rill::parity {

/// An expression.
struct Term {
  enum class Kind : std::uint8_t {
    number,    ///< `value`
    name,      ///< `text`
    call,      ///< function `text` of `parts`
    list,      ///< [parts…]
    negative,  ///< -parts[0]
    binary,    ///< parts[0] `text` parts[1]
    choice,    ///< parts[0] if parts[1] else parts[2]
    index,     ///< parts[0][parts[1], …]
    slice,     ///< within an index: start : end : step, each perhaps `none`
    none,      ///< None, or a bound left out
  };
  Kind kind = Kind::none;
  double value = 0;
  std::string text = {};
  std::vector<Term> parts = {};
};

/// One statement: repeated, assigned to a name, or a bare result.
struct Statement {
  std::int64_t times = 1;
  std::string name = {};  ///< empty: a bare expression
  Term term;
};

struct Program {
  std::vector<Statement> statements;
  std::vector<Statement> heads;  ///< results by name; without any, the last statement's value is the result
};

/// Throws Error with the place and what was expected there.
Program parse(std::string_view text);

}  // namespace rill::parity
