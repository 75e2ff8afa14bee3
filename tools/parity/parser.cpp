#include <parity/syntax.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <initializer_list>
#include <utility>

#include <rill/core/error.h>

namespace rill::parity {
namespace {

struct Token {
  enum class Kind { number, name, sign, end };
  Kind kind = Kind::end;
  std::string_view text = {};
  double value = 0;
  std::size_t place = 0;
};

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Length of the operator or bracket at the front of s, 0 if there is none.
std::size_t sign_length(std::string_view s) {
  for (std::string_view two : {"**", "<=", ">=", "==", "!="}) {
    if (s.starts_with(two)) return 2;
  }
  return std::string_view("+-*/%@()[],;:=<>").find(s.front()) != std::string_view::npos ? 1 : 0;
}

std::vector<Token> tokenise(std::string_view text) {
  std::vector<Token> tokens;
  std::size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (c == ' ') {
      ++i;
      continue;
    }
    Token token{.place = i};
    std::size_t length = 0;
    if (is_digit(c) || (c == '.' && i + 1 < text.size() && is_digit(text[i + 1]))) {
      token.kind = Token::Kind::number;
      const auto read = std::from_chars(text.data() + i, text.data() + text.size(), token.value);
      length = static_cast<std::size_t>(read.ptr - (text.data() + i));
    } else if (begins_name(c)) {
      token.kind = Token::Kind::name;
      while (i + length < text.size() && (begins_name(text[i + length]) || is_digit(text[i + length])))
        ++length;
    } else {
      token.kind = Token::Kind::sign;
      length = sign_length(text.substr(i));
      check(length > 0, "expression: unknown sign '{}' at column {} of '{}'", c, i + 1, text);
    }
    token.text = text.substr(i, length);
    tokens.push_back(token);
    i += length;
  }
  tokens.push_back({.kind = Token::Kind::end, .text = "the end", .place = text.size()});
  return tokens;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), tokens_(tokenise(text)) {}

  Program program() {
    Program program;
    do {
      if (peek_word("heads")) {
        ++at_;
        do program.heads.push_back(assignment());
        while (take(","));
      } else if (!program.heads.empty()) {
        gradient_remark();
      } else {
        program.statements.push_back(statement());
      }
    } while (take(";"));
    if (peek().kind != Token::Kind::end) expected("';' or the end");
    return program;
  }

 private:
  const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool peek_word(std::string_view word, std::size_t ahead = 0) const {
    return peek(ahead).kind == Token::Kind::name && peek(ahead).text == word;
  }
  bool peek_sign(std::string_view sign, std::size_t ahead = 0) const {
    return peek(ahead).kind == Token::Kind::sign && peek(ahead).text == sign;
  }
  bool take(std::string_view sign) {
    if (!peek_sign(sign)) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (!peek_word(word)) return false;
    ++at_;
    return true;
  }
  void words(std::initializer_list<std::string_view> sequence) {
    for (std::string_view word : sequence) {
      if (!take_word(word)) expected(word);
    }
  }
  void need(std::string_view sign) {
    if (!take(sign)) expected(sign);
  }
  std::string name() {
    if (peek().kind != Token::Kind::name) expected("a name");
    return std::string(tokens_[at_++].text);
  }
  double number() {
    if (peek().kind != Token::Kind::number) expected("a number");
    return tokens_[at_++].value;
  }
  [[noreturn]] void expected(std::string_view what) const {
    fail("expression: expected {} at column {} of '{}', found '{}'", what, peek().place + 1, text_,
         peek().text);
  }

  Statement statement() {
    if (peek().kind == Token::Kind::number && peek_word("times", 1)) {
      const double times = number();
      ++at_;
      check(times >= 0 && times <= 1e9 && times == static_cast<double>(static_cast<std::int64_t>(times)),
            "expression: {} times is not a count in '{}'", times, text_);
      Statement repeated = statement();
      check(repeated.times == 1, "expression: a repetition within a repetition in '{}'", text_);
      repeated.times = static_cast<std::int64_t>(times);
      return repeated;
    }
    if (peek().kind == Token::Kind::name && peek_sign("=", 1)) return assignment();
    return {.term = endings(expression())};
  }

  Statement assignment() {
    Statement s;
    s.name = name();
    need("=");
    s.term = expression();
    return s;
  }

  /// `… summed over dim N`, `… squared`, `… is never formed: NAME gets a zero gradient`.
  Term endings(Term term) {
    for (;;) {
      if (take_word("summed")) {
        words({"over", "dim"});
        const bool negative = take("-");
        const double dim = number();
        term = call("sum", {std::move(term), {.kind = Term::Kind::number, .value = negative ? -dim : dim}});
      } else if (take_word("squared")) {
        term = binary("**", std::move(term), {.kind = Term::Kind::number, .value = 2});
      } else if (take_word("is")) {
        term = never_formed(std::move(term));
      } else {
        return term;
      }
    }
  }

  /// `P + Q is never formed`: what the reference forms in its place is twice P, and Q takes no part.
  Term never_formed(Term sum) {
    words({"never", "formed"});
    check(sum.kind == Term::Kind::binary && sum.text == "+",
          "expression: only a sum can be 'never formed' in '{}'", text_);
    if (take(":")) {
      name();
      words({"gets", "a", "zero", "gradient"});
    }
    return binary("*", {.kind = Term::Kind::number, .value = 2}, std::move(sum.parts[0]));
  }

  /// `both get a gradient`: said of the heads, and true of every case.
  void gradient_remark() {
    if (!take_word("both") && !take_word("all")) expected("'both get a gradient'");
    words({"get", "a", "gradient"});
  }

  static Term call(std::string function, std::vector<Term> arguments) {
    return {.kind = Term::Kind::call, .text = std::move(function), .parts = std::move(arguments)};
  }
  static Term binary(std::string sign, Term a, Term b) {
    Term t{.kind = Term::Kind::binary, .text = std::move(sign)};
    t.parts.push_back(std::move(a));
    t.parts.push_back(std::move(b));
    return t;
  }

  Term expression() {
    const Nesting nesting(*this);
    Term value = level(0);
    if (!take_word("if")) return value;
    Term condition = level(0);
    words({"else"});
    Term other = expression();
    Term choice{.kind = Term::Kind::choice};
    choice.parts.push_back(std::move(value));
    choice.parts.push_back(std::move(condition));
    choice.parts.push_back(std::move(other));
    return choice;
  }

  /// Left-associative operators, loosest first.
  Term level(std::size_t depth) {
    static constexpr std::array<std::array<std::string_view, 6>, 3> signs{
        {{"<", "<=", ">", ">=", "==", "!="}, {"+", "-"}, {"*", "/", "%", "@"}}};
    if (depth == signs.size()) return signed_term();
    Term left = level(depth + 1);
    for (bool found = true; found;) {
      found = false;
      for (std::string_view sign : signs[depth]) {
        if (sign.empty() || !take(sign)) continue;
        left = binary(std::string(sign), std::move(left), level(depth + 1));
        found = true;
        break;
      }
    }
    return left;
  }

  Term signed_term() {
    const Nesting nesting(*this);
    if (take("+")) return signed_term();
    if (take("-")) {
      Term t{.kind = Term::Kind::negative};
      t.parts.push_back(signed_term());
      return t;
    }
    Term base = indexed();
    if (!take("**")) return base;
    return binary("**", std::move(base), signed_term());
  }

  Term indexed() {
    Term term = atom();
    while (take("[")) {
      Term index{.kind = Term::Kind::index};
      index.parts.push_back(std::move(term));
      do index.parts.push_back(subscript());
      while (take(","));
      need("]");
      term = std::move(index);
    }
    return term;
  }

  Term subscript() {
    std::vector<Term> bounds;
    do {
      const bool absent = peek_sign(":") || peek_sign(",") || peek_sign("]");
      bounds.push_back(absent ? Term{} : expression());
    } while (take(":") && bounds.size() < 3);
    if (bounds.size() == 1) {
      if (bounds[0].kind == Term::Kind::none && bounds[0].text.empty()) expected("an index");
      return std::move(bounds[0]);
    }
    return {.kind = Term::Kind::slice, .parts = std::move(bounds)};
  }

  Term atom() {
    if (peek().kind == Token::Kind::number) return {.kind = Term::Kind::number, .value = number()};
    if (take("(")) {
      Term inner = expression();
      need(")");
      return inner;
    }
    if (take("[")) return {.kind = Term::Kind::list, .parts = arguments("]")};
    if (peek().kind != Token::Kind::name) expected("a value");
    std::string word = name();
    if (word == "None") return {.text = std::move(word)};
    if (take("(")) return call(std::move(word), arguments(")"));
    return {.kind = Term::Kind::name, .text = std::move(word)};
  }

  std::vector<Term> arguments(std::string_view closing) {
    std::vector<Term> list;
    if (take(closing)) return list;
    do list.push_back(expression());
    while (take(","));
    need(closing);
    return list;
  }

  /// A limit on brackets within brackets: the parser calls itself for each.
  struct Nesting {
    explicit Nesting(Parser& p) : parser(p) {
      check(++parser.depth_ <= 200, "expression: nested more than 200 deep");
    }
    ~Nesting() { --parser.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    Parser& parser;
  };

  std::string_view text_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Program parse(std::string_view text) { return Parser(text).program(); }

}  // namespace rill::parity
