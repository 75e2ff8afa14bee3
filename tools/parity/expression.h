/// The small language in which a reference set writes graphs, schedules and formulas down.
///
///   expression   1, x, f(x, 1), [a, b], x[:, None], -x, `a if c else b`, and the operators
///                ** @ * / % + - < <= > >= == !=
///   statements   separated by `;`: an expression, `name = expression`, `N times STATEMENT`,
///                `heads a = …, b = …`
///   endings      `EXPRESSION summed over dim N`, `… squared`,
///                `EXPRESSION is never formed: NAME gets a zero gradient`
///
/// Numbers stay numbers (Python's % and **) until they meet a tensor. Functions are the ops of the op table,
/// called with their arguments in order, and sqrt, exp, min, … of numbers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <parity/call.h>
#include <rill/core/tensor.h>

namespace rill::parity {

/// Value of an expression: a number, a tensor, or a list of either.
struct Value {
  std::variant<double, Tensor, std::vector<Value>> held;
};

using Variables = std::map<std::string, Value, std::less<>>;

struct Program;

/// A text of the language, parsed.
class Expression {
 public:
  /// Throws Error with the place and what was expected there.
  explicit Expression(std::string_view text);

  /// Runs the statements: the heads by name, or the last value as "out". The variables hold the inputs and,
  /// afterwards, all that was assigned.
  NamedTensors evaluate(Variables& variables) const;
  /// The same for a text that stands for one number.
  double number(Variables& variables) const;

 private:
  std::string text_;
  std::shared_ptr<const Program> program_;
};

}  // namespace rill::parity
