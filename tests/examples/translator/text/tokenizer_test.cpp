#include <doctest/doctest.h>
#include <utf8proc.h>
#include <nlohmann/json.hpp>

#include <string>

#include <rill/core/error.h>
#include <rill/core/random.h>
#include <translator/text/spacing.h>
#include <translator/text/tokenizer.h>

using translator::is_utf8;
using translator::normalize_text;
using translator::printable;
using translator::Spacing;
using translator::tokenize;
using translator::Tokens;

namespace {

std::string detokenize(const Tokens& tokens) { return Spacing().join(tokens); }

}  // namespace

TEST_CASE("text: words keep a trailing apostrophe and punctuation is separate") {
  CHECK(tokenize("L'étagère n'est-elle pas là ?") ==
        Tokens{"l'", "étagère", "n'", "est", "-", "elle", "pas", "là", "?"});
  CHECK(tokenize("Don't pay $5.20, \"please\"!") ==
        Tokens{"don'", "t", "pay", "$", "5", ".", "20", ",", "\"", "please", "\"", "!"});
  CHECK(tokenize("'tis snake_case, the boys' dog") ==
        Tokens{"'", "tis", "snake_case", ",", "the", "boys'", "dog"});
  CHECK(tokenize("").empty());
  CHECK(tokenize(" \t ").empty());
  CHECK(tokenize("..") == Tokens{".", "."});
  CHECK(tokenize("<s> </s> <pad> <unk>") ==
        Tokens{"<", "s", ">", "<", "/", "s", ">", "<", "pad", ">", "<", "unk", ">"});
}

TEST_CASE("text: typographic apostrophes become plain ones") {
  CHECK(tokenize("l\u2019eau") == Tokens{"l'", "eau"});
  CHECK(tokenize("l\u02bceau") == Tokens{"l'", "eau"});
}

TEST_CASE("text: lower case covers all of Unicode") {
  CHECK(normalize_text("ÉTÉ ŒUF ÇA ÀÉÎÕÜ") == "été œuf ça àéîõü");
  CHECK(normalize_text("МОСКВА") == "москва");
  CHECK(normalize_text("ẞ ＡＢ") == "ß ａｂ");
  CHECK(normalize_text("İZMİR") == "i\u0307zmi\u0307r");
  CHECK(normalize_text("I\u0307") == normalize_text("\u0130"));
  CHECK(normalize_text("ΟΔΟΣ ΣΟΦΟΣ, Σ") == "οδος σοφος, σ");
}

TEST_CASE("text: composed and decomposed letters are equal") {
  CHECK(normalize_text("e\u0301te\u0301") == "été");
  CHECK(tokenize("L'e\u0301te\u0301") == tokenize("L'été"));
  CHECK(tokenize("Dea\u0323\u0302m") == Tokens{"deậm"});
  // Letters without a composed form keep their mark.
  CHECK(tokenize("x\u0301y q\u0303") == Tokens{"x\u0301y", "q\u0303"});
  CHECK(normalize_text("e\u200b\u0301") == "é");
}

TEST_CASE("text: every kind of space separates and is trimmed at the ends") {
  for (const char* space : {"\u00a0", "\u202f", "\u2009", "\u2003", "\u3000", "\u1680", "\u2028", "\u2029",
                            "\u0085", "\v", "\f", "\r", "\t", "\x01", "\x1b", "\x7f", "\u009b", "  "}) {
    CAPTURE(printable(space));
    CHECK(tokenize("carte" + std::string(space) + "?") == Tokens{"carte", "?"});
    CHECK(normalize_text(std::string(space) + "a" + space + space + "b" + space) == "a b");
  }
  CHECK(tokenize(std::string("a\0b", 3)) == Tokens{"a", "b"});
}

TEST_CASE("text: zero-width characters are dropped") {
  for (const char* none : {"\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u200e", "\u200f",
                           "\u061c", "\u202a", "\u202e", "\u2066", "\u2069", "\ufe0f", "\u034f"}) {
    CAPTURE(printable(none));
    CHECK(tokenize("la" + std::string(none) + "rge") == Tokens{"large"});
    CHECK(tokenize(std::string(none)).empty());
  }
}

TEST_CASE("text: only scripts without spaces are split by letter") {
  CHECK(tokenize("今天河水很冷。") == Tokens{"今", "天", "河", "水", "很", "冷", "。"});
  CHECK(tokenize("カ\u3099ス") == Tokens{"ガ", "ス"});
  CHECK(tokenize("2020年 ABC株") == Tokens{"2020", "年", "abc", "株"});
  CHECK(tokenize("ที่นี่") == Tokens{"ที่", "นี่"});
  CHECK(tokenize("그녀는 차를") == Tokens{"그녀는", "차를"});
  CHECK(tokenize("أين البيت؟") == Tokens{"أين", "البيت", "؟"});
  CHECK(tokenize("בּוֹקֶר").size() == 1);
  CHECK(tokenize("हिन्दी") == Tokens{"हिन्दी"});
  CHECK(translator::is_unspaced("今"));
  CHECK_FALSE(translator::is_unspaced("차를"));
  CHECK_FALSE(translator::is_unspaced("。"));
  CHECK_FALSE(translator::is_unspaced(""));
}

TEST_CASE("text: bytes that are not UTF-8 become replacement characters") {
  for (const char* bad : {"\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe9t", "\x80"}) {
    CAPTURE(printable(bad));
    CHECK_FALSE(is_utf8(bad));
    CHECK(is_utf8(normalize_text(bad)));
    CHECK(normalize_text(bad).find("\ufffd") != std::string::npos);
  }
  CHECK(is_utf8("été 今 😀"));
  CHECK(is_utf8(""));
  CHECK(tokenize("a\xff"
                 "b") == Tokens{"a", "\ufffd", "b"});
}

TEST_CASE("text: normalisation is idempotent for every code point") {
  for (utf8proc_int32_t code = 0; code <= 0x10FFFF; ++code) {
    if (!utf8proc_codepoint_valid(code)) {
      continue;
    }
    utf8proc_uint8_t bytes[4];
    const auto n = utf8proc_encode_char(code, bytes);
    const std::string text =
        "A" + std::string(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n)) + "\u0301";
    const std::string once = normalize_text(text);
    if (normalize_text(once) != once || !is_utf8(once)) {
      FAIL("U+" << std::hex << code << ": " << once);
    }
  }
}

TEST_CASE("text: tokens of random bytes are not empty, contain no space and tokenize to themselves") {
  rill::Rng rng(7);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::uint64_t n = rng.below(12); n > 0; --n) {
      static const std::string fragments[] = {
          "a", "É", "e\u0301", "'",      "\u2019", " ", "\u00a0", "今", "\u200b",       "\xff",   "3",
          ".", "-", "Σ",       "\u0301", "İ",      "ส", "\u0e34", "😀",  "\u1e9b\u0323", "\u0344", "<"};
      text += rng.bernoulli(0.9) ? fragments[rng.below(std::size(fragments))]
                                 : std::string(1, static_cast<char>(rng.below(256)));
    }
    const Tokens tokens = tokenize(text);
    std::string again;
    for (const std::string& token : tokens) {
      REQUIRE_FALSE(token.empty());
      REQUIRE(token.find(' ') == std::string::npos);
      again += token + " ";
    }
    CAPTURE(printable(text));
    REQUIRE(tokenize(again) == tokens);
    REQUIRE(is_utf8(detokenize(tokens)));
  }
}

TEST_CASE("text: control characters are escaped") {
  CHECK(printable("été\n") == "été\\x0a");
  CHECK(printable("\x1b[31m") == "\\x1b[31m");
  CHECK(printable("\u009b") == "\\x9b");
  CHECK(printable("a\u202e"
                  "b") == "a\\u202eb");
  CHECK(printable("\xff") == "\\xff");
  CHECK(printable(std::string_view("\0", 1)) == "\\x00");
}

TEST_CASE("spacing: the default suits English") {
  for (const char* text : {"he said: \"it's fine.\" really?", "a well-known (old) trick, 2.0 at 12:30!",
                           "the boys' dog doesn't bark...", "thomas's uncle says this'll do",
                           "\"who?\" \"me.\"", "50% of $20; ok", "今天河水很冷。"}) {
    CHECK(detokenize(tokenize(text)) == text);
  }
  CHECK(detokenize({}) == "");
}

TEST_CASE("spacing: French is learned from examples") {
  Spacing french;
  for (const char* text : {"Où est la carte ?", "Il dit\u00a0: «\u202fPlus tard.\u202f» Prêt\u2009? Vas-y !",
                           "C'est l'eau, l'air ; le feu : tout !", "Il est 12:30, ou 2.5 heures."}) {
    french.observe(text);
  }
  for (const char* text : {"l'été est-il long ?", "elle crie : « aujourd'hui ! »", "à 10:15, 3.4 km"}) {
    CHECK(french.join(tokenize(text)) == text);
  }
  CHECK(detokenize(tokenize("prêt ?")) == "prêt?");
}

TEST_CASE("spacing: JSON round trip") {
  Spacing spacing;
  spacing.observe("Ça va ? 2.0 !");
  CHECK(Spacing::from_json(spacing.to_json(), "f.json") == spacing);
  CHECK(spacing.to_json().dump() == R"({"!":[1,1,1],"0.0":[0,0,1],"?":[1,1,1]})");
  for (const char* bad : {"[]", "3", R"({"?":1})", R"({"?":[1,2]})", R"({"?":[2,0,1]})", R"({"?":[-1,0,1]})",
                          R"({"?":[0,0,1e3]})", R"({"?":[0,0,18446744073709551615]})"}) {
    CHECK_THROWS_WITH_AS(Spacing::from_json(nlohmann::json::parse(bad), "f.json"),
                         doctest::Contains("f.json: "), rill::Error);
  }
}
