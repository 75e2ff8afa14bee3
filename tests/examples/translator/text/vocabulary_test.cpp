#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include <rill/core/error.h>
#include <rill/core/io/file.h>
#include <translator/text/json.h>
#include <translator/text/vocabulary.h>

#include <examples/temporary_folder.h>

using translator::Tokens;
using translator::Vocabulary;
using translator::WordCounter;

TEST_CASE("vocabulary: words are ordered by count, then by bytes") {
  WordCounter counter;
  counter.add({"b", "a", "été", "b", "zoo", "a", "été", "c"});
  counter.add({"b"});
  CHECK(counter.tokens() == 9);
  CHECK(counter.types() == 5);
  CHECK(counter.vocabulary().words() == std::vector<std::string>{"b", "a", "été", "c", "zoo"});
  CHECK(counter.vocabulary(2).words() == std::vector<std::string>{"b", "a", "été"});
  CHECK(counter.vocabulary(9).size() == Vocabulary::specials);
}

TEST_CASE("vocabulary: sentences to ids and back") {
  const Vocabulary vocabulary({"the", "cat"});
  CHECK(vocabulary.size() == 6);
  CHECK(vocabulary.encode({"the", "dog", "cat"}) == std::vector<std::int64_t>{4, 3, 5, 2});
  CHECK(vocabulary.encode({}) == std::vector<std::int64_t>{2});
  const std::vector<std::int64_t> ids = {1, 4, 3, 0, 5, 2, 4};
  CHECK(vocabulary.decode(ids) == Tokens{"the", "<unk>", "cat"});
  const std::vector<std::int64_t> outside = {6};
  CHECK_THROWS_WITH_AS(vocabulary.decode(outside), "vocabulary: id 6 is outside 0..5", rill::Error);
  CHECK_THROWS_AS(vocabulary.text(-1), rill::Error);
}

TEST_CASE("vocabulary: words spelled like special tokens are ordinary words") {
  const Vocabulary vocabulary({"<pad>", "<s>", "</s>", "<unk>", "x"});
  CHECK(vocabulary.encode({"</s>", "x", "<pad>", "<unk>", "<s>"}) ==
        std::vector<std::int64_t>{6, 8, 4, 7, 5, 2});
  const std::vector<std::int64_t> ids = {6, 8, 4, 2};
  CHECK(vocabulary.decode(ids) == Tokens{"</s>", "x", "<pad>"});
}

TEST_CASE("vocabulary: JSON round trip") {
  const TemporaryFolder folder;
  const Vocabulary vocabulary({"été", "\"", "猫", "<s>"});
  const std::string path = folder / "source.json";
  rill::write_file_atomically(path, vocabulary.to_json().dump(2));
  CHECK(Vocabulary::from_json(translator::read_json(path), path) == vocabulary);
  CHECK(Vocabulary::from_json(Vocabulary().to_json(), path) == Vocabulary());
}

TEST_CASE("vocabulary: an invalid file is an error that names it") {
  for (const char* bad :
       {"[]", "{}", R"({"format":"rill-vocabulary","version":1})", R"({"format":"x","version":1,"words":[]})",
        R"({"format":"rill-vocabulary","version":2,"words":[]})",
        R"({"format":"rill-vocabulary","version":1,"words":3})",
        R"({"format":"rill-vocabulary","version":1,"words":["a","a"]})",
        R"({"format":"rill-vocabulary","version":1,"words":["a",""]})",
        R"({"format":"rill-vocabulary","version":1,"words":["a",3]})",
        R"({"format":"rill-vocabulary","version":1,"words":[],"more":0})"}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH_AS(Vocabulary::from_json(nlohmann::json::parse(bad), "m/source.json"),
                         doctest::Contains("m/source.json: "), rill::Error);
  }
}

TEST_CASE("json: files are read strictly") {
  const TemporaryFolder folder;
  const auto error_of = [&](const std::string& text) -> std::string {
    try {
      translator::read_json(folder.file("a.json", text));
    } catch (const rill::Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(error_of("{\"a\": [1, {\"a\": 2}, {\"a\": 3}]}") == "");
  CHECK(error_of("{\"a\": 1, \"b\": {}, \"a\": 2}").find("a.json: 'a' occurs twice") != std::string::npos);
  for (const char* bad : {"", "{", "{\"a\":}", "{} x", "nul", "\"\xff\"", "\x01"}) {
    CHECK(error_of(bad).find("a.json: ") != std::string::npos);
  }
  CHECK(error_of(std::string(1000000, '[')).find("nested more than 100 deep") != std::string::npos);
  CHECK_THROWS_WITH_AS(translator::read_json(folder / "none.json"), doctest::Contains("none.json"),
                       rill::Error);
}

TEST_CASE("json: fields are checked for type and range") {
  const auto object = nlohmann::json::parse(
      R"({"n": 3, "big": 18446744073709551615, "x": 0.5, "s": "text", "b": true, "list": [1], "more": 0})");
  translator::Fields fields(object, "c.json");
  CHECK(fields.integer("n", 1, 3) == 3);
  CHECK(fields.number("x", 0, 1) == 0.5);
  CHECK(fields.number("n", 0, 9) == 3);
  CHECK(fields.string("s") == "text");
  CHECK(fields.boolean("b"));
  CHECK(fields.value("list").size() == 1);
  CHECK(fields.has("more"));
  CHECK_FALSE(fields.has("less"));
  CHECK_THROWS_WITH_AS(fields.integer("n", 4, 9), "c.json: 'n' is 3; it must be a whole number from 4 to 9",
                       rill::Error);
  CHECK_THROWS_AS(fields.integer("big", 0, 9), rill::Error);
  CHECK_THROWS_AS(fields.integer("x", 0, 9), rill::Error);
  CHECK_THROWS_AS(fields.integer("s", 0, 9), rill::Error);
  CHECK_THROWS_AS(fields.number("x", 1, 2), rill::Error);
  CHECK_THROWS_AS(fields.string("n"), rill::Error);
  CHECK_THROWS_AS(fields.boolean("n"), rill::Error);
  CHECK_THROWS_WITH_AS(fields.integer("less", 0, 9), "c.json: 'less' is missing", rill::Error);
  CHECK_THROWS_WITH_AS(fields.finish(), "c.json: 'more' is not known here", rill::Error);
  CHECK_THROWS_WITH_AS(translator::Fields(object["list"], "c.json"), "c.json: it holds [1], not an object",
                       rill::Error);
}
