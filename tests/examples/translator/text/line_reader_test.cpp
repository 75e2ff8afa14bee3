#include <doctest/doctest.h>
#include <unistd.h>

#include <string>

#include <examples/temporary_folder.h>
#include <translator/text/line_reader.h>

TEST_CASE("lines: a pipe is read without waiting for more input") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  translator::LineReader reader(ends[0], "standard input");
  std::string line;
  REQUIRE(::write(ends[1], "\n", 1) == 1);
  REQUIRE(reader.next(line));  // without waiting for more
  CHECK(line == "");
  REQUIRE(::write(ends[1], "an owl\r\nlast", 12) == 12);
  REQUIRE(reader.next(line));
  CHECK(line == "an owl");
  ::close(ends[1]);
  REQUIRE(reader.next(line));
  CHECK(line == "last");
  CHECK(reader.number() == 3);
  CHECK_FALSE(reader.next(line));
  CHECK_FALSE(reader.next(line));
  ::close(ends[0]);
}

TEST_CASE("lines: CRs and line ends across chunk boundaries") {
  const TemporaryFolder folder;
  for (std::size_t n = 65530; n < 65542; ++n) {
    const std::string path = folder.file("a.txt", std::string(n, 'x') + "\r\nab\r\ncd");
    translator::LineReader reader(path);
    std::string line;
    REQUIRE(reader.next(line));
    REQUIRE(line.size() == n);
    REQUIRE(reader.next(line));
    REQUIRE(line == "ab");
    REQUIRE(reader.next(line));
    REQUIRE(line == "cd");
    REQUIRE_FALSE(reader.next(line));
  }
}
