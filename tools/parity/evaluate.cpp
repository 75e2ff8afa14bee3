#include <parity/expression.h>
#include <parity/ops.h>
#include <parity/syntax.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <rill/core/ops.h>

namespace rill::parity {
namespace {

using Kind = Term::Kind;

Value number(double value) { return {value}; }

double as_number(const Value& value, std::string_view what) {
  const double* n = std::get_if<double>(&value.held);
  check(n != nullptr, "expression: {} needs a number", what);
  return *n;
}

std::int64_t as_integer(const Value& value, std::string_view what) {
  const double n = as_number(value, what);
  check(std::abs(n) < 9e15 && std::trunc(n) == n, "expression: {} needs an integer, not {}", what, n);
  return static_cast<std::int64_t>(n);
}

const Tensor& as_tensor(const Value& value, std::string_view what) {
  const Tensor* t = std::get_if<Tensor>(&value.held);
  check(t != nullptr, "expression: {} needs a tensor", what);
  return *t;
}

/// Python's %: the sign of the divisor.
double modulo(double a, double b) { return a - b * std::floor(a / b); }

double apply(std::string_view sign, double a, double b) {
  if (sign == "+") return a + b;
  if (sign == "-") return a - b;
  if (sign == "*") return a * b;
  if (sign == "/") return a / b;
  if (sign == "%") return modulo(a, b);
  if (sign == "**") return std::pow(a, b);
  if (sign == "<") return a < b;
  if (sign == "<=") return a <= b;
  if (sign == ">") return a > b;
  if (sign == ">=") return a >= b;
  if (sign == "==") return a == b;
  check(sign == "!=", "expression: '{}' of two numbers", sign);
  return a != b;
}

Tensor apply(std::string_view sign, const Tensor& a, double b) {
  if (sign == "+") return add(a, b);
  if (sign == "-") return sub(a, b);
  if (sign == "*") return mul(a, b);
  if (sign == "/") return div(a, b);
  check(sign == "**", "expression: '{}' of a tensor and a number", sign);
  return pow(a, b);
}

Tensor apply(std::string_view sign, double a, const Tensor& b) {
  if (sign == "+") return add(b, a);
  if (sign == "-") return sub(a, b);
  if (sign == "*") return mul(b, a);
  check(sign == "/", "expression: '{}' of a number and a tensor", sign);
  return div(a, b);
}

Tensor apply(std::string_view sign, const Tensor& a, const Tensor& b) {
  if (sign == "+") return add(a, b);
  if (sign == "-") return sub(a, b);
  if (sign == "*") return mul(a, b);
  if (sign == "/") return div(a, b);
  if (sign == "@") return matmul(a, b);
  check(sign == "**", "expression: '{}' of two tensors", sign);
  return pow(a, b);
}

Value apply(std::string_view sign, const Value& a, const Value& b) {
  const double* x = std::get_if<double>(&a.held);
  const double* y = std::get_if<double>(&b.held);
  if (x != nullptr && y != nullptr) return {apply(sign, *x, *y)};
  if (x != nullptr) return {apply(sign, *x, as_tensor(b, sign))};
  if (y != nullptr) return {apply(sign, as_tensor(a, sign), *y)};
  return {apply(sign, as_tensor(a, sign), as_tensor(b, sign))};
}

/// Functions of numbers; false when there is none of that name and number of arguments.
bool numeric_function(std::string_view name, const std::vector<Value>& arguments, Value& result) {
  using F = double (*)(double);
  static constexpr std::pair<std::string_view, F> functions[] = {
      {"sqrt", [](double x) { return std::sqrt(x); }},
      {"exp", [](double x) { return std::exp(x); }},
      {"log", [](double x) { return std::log(x); }},
      {"sin", [](double x) { return std::sin(x); }},
      {"cos", [](double x) { return std::cos(x); }},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"abs", [](double x) { return std::abs(x); }},
      {"floor", [](double x) { return std::floor(x); }},
      {"ceil", [](double x) { return std::ceil(x); }},
      {"int", [](double x) { return std::trunc(x); }},
      {"float", [](double x) { return x; }}};
  std::vector<double> numbers;
  for (const Value& v : arguments) {
    const double* n = std::get_if<double>(&v.held);
    if (n == nullptr) return false;
    numbers.push_back(*n);
  }
  if (numbers.empty()) return false;
  if (name == "min" || name == "max") {
    const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
    result = number(name == "min" ? *least : *most);
    return true;
  }
  if (name == "pow" && numbers.size() == 2) {
    result = number(std::pow(numbers[0], numbers[1]));
    return true;
  }
  for (const auto& [known, f] : functions) {
    if (known != name || numbers.size() != 1) continue;
    result = number(f(numbers[0]));
    return true;
  }
  return false;
}

/// A value as the argument of an op: integers as integers, since a dimension must be one.
Argument to_argument(const Value& value) {
  if (const double* n = std::get_if<double>(&value.held)) {
    if (std::trunc(*n) == *n && std::abs(*n) < 9e15) return nlohmann::json(static_cast<std::int64_t>(*n));
    return nlohmann::json(*n);
  }
  if (const Tensor* t = std::get_if<Tensor>(&value.held)) return *t;
  const auto& list = std::get<std::vector<Value>>(value.held);
  if (!list.empty() && std::holds_alternative<Tensor>(list.front().held)) {
    std::vector<Tensor> tensors;
    for (const Value& v : list) tensors.push_back(as_tensor(v, "a list of tensors"));
    return tensors;
  }
  nlohmann::json numbers = nlohmann::json::array();
  for (const Value& v : list) numbers.push_back(as_integer(v, "a list"));
  return numbers;
}

class Evaluator {
 public:
  explicit Evaluator(Variables& variables) : variables_(variables) {}

  Value operator()(const Term& term) {
    switch (term.kind) {
      case Kind::number:
        return number(term.value);
      case Kind::name:
        return variable(term.text);
      case Kind::call:
        return call(term);
      case Kind::list:
        return {all(term.parts)};
      case Kind::negative:
        return negative((*this)(term.parts[0]));
      case Kind::binary:
        return apply(term.text, (*this)(term.parts[0]), (*this)(term.parts[1]));
      case Kind::choice:
        return (*this)(term.parts[as_number((*this)(term.parts[1]), "a condition") != 0 ? 0 : 2]);
      case Kind::index:
        return index(term);
      case Kind::slice:
      case Kind::none:
        break;
    }
    fail("expression: None and ranges belong into an index");
  }

  Value run(const Statement& s) {
    Value value = number(0);
    for (std::int64_t i = 0; i < s.times; ++i) {
      value = (*this)(s.term);
      if (!s.name.empty()) variables_.insert_or_assign(s.name, value);
    }
    return value;
  }

 private:
  std::vector<Value> all(const std::vector<Term>& terms) {
    std::vector<Value> values;
    for (const Term& t : terms) values.push_back((*this)(t));
    return values;
  }

  Value variable(const std::string& name) const {
    const auto found = variables_.find(name);
    if (found != variables_.end()) return found->second;
    check(name == "pi", "expression: '{}' is not known", name);
    return number(std::numbers::pi);
  }

  static Value negative(const Value& value) {
    if (const double* n = std::get_if<double>(&value.held)) return number(-*n);
    return {neg(as_tensor(value, "-"))};
  }

  Value call(const Term& term) {
    const std::vector<Value> arguments = all(term.parts);
    Value result = number(0);
    if (numeric_function(term.text, arguments, result)) return result;
    const Op* op = find_op(term.text);
    if (op == nullptr) throw Unsupported(fmt::format("expression: there is no function '{}'", term.text));
    check(arguments.size() <= op->parameters.size(), "expression: {} takes {} arguments at most, not {}",
          term.text, op->parameters.size(), arguments.size());
    Call call;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      call.set(std::string(op->parameters[i]), to_argument(arguments[i]));
    }
    const NamedTensors outputs = op->run(call);
    call.check_all_used();
    check(outputs.size() == 1, "expression: {} has {} results; one can be used", term.text, outputs.size());
    return {outputs.front().second};
  }

  Value index(const Term& term) {
    Tensor x = as_tensor((*this)(term.parts[0]), "an index");
    std::int64_t dim = 0;
    for (std::size_t i = 1; i < term.parts.size(); ++i) {
      const Term& part = term.parts[i];
      if (part.kind == Kind::none) {
        x = unsqueeze(x, dim++);
      } else if (part.kind == Kind::slice) {
        const auto bound = [&](std::size_t k, std::int64_t otherwise) {
          const bool given = k < part.parts.size() && part.parts[k].kind != Kind::none;
          return given ? as_integer((*this)(part.parts[k]), "an index") : otherwise;
        };
        x = slice(x, dim, bound(0, 0), bound(1, x.size(dim)), bound(2, 1));
        ++dim;
      } else {
        x = select(x, dim, as_integer((*this)(part), "an index"));
      }
    }
    return {x};
  }

  Variables& variables_;
};

}  // namespace

Expression::Expression(std::string_view text)
    : text_(text), program_(std::make_shared<const Program>(parse(text_))) {}

NamedTensors Expression::evaluate(Variables& variables) const {
  Evaluator evaluate(variables);
  Value last{0.0};
  for (const Statement& s : program_->statements) last = evaluate.run(s);
  if (program_->heads.empty()) return single(as_tensor(last, "the result"));
  NamedTensors outputs;
  for (const Statement& head : program_->heads) {
    outputs.emplace_back(head.name, as_tensor(evaluate.run(head), "a head"));
  }
  return outputs;
}

double Expression::number(Variables& variables) const {
  check(program_->heads.empty() && !program_->statements.empty(), "expression: '{}' is not a number", text_);
  Evaluator evaluate(variables);
  Value last{0.0};
  for (const Statement& s : program_->statements) last = evaluate.run(s);
  return as_number(last, "the result");
}

}  // namespace rill::parity
