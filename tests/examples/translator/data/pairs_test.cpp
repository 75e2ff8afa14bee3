#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <examples/temporary_folder.h>
#include <rill/core/error.h>
#include <translator/data/pairs.h>

using translator::Pairs;
using translator::read_pairs;
using translator::read_parallel;
using translator::ReadOptions;
using translator::Tokens;

namespace {

const std::string plain =
    "The owl sleeps.\tLa chouette dort.\n"
    "My brother mends the roof.\tMon frère répare le toit.\n"
    "Is the soup hot?\tLa soupe est-elle chaude ?\n";

/// The tokens and notes of a file, or the error, as one string without the folder's path.
std::string read(const std::string& path, const ReadOptions& options = {}) {
  std::string text;
  try {
    const Pairs pairs = read_pairs(path, options);
    for (const auto& pair : pairs.pairs) {
      for (const Tokens* side : {&pair.source, &pair.target}) {
        for (const std::string& token : *side) {
          text += token + " ";
        }
        text += side == &pair.source ? "| " : "\n";
      }
    }
    for (const std::string& note : pairs.notes) {
      text += "note " + note + "\n";
    }
  } catch (const rill::Error& error) {
    text = std::string("error ") + error.what();
  }
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  for (std::size_t at; !folder.empty() && (at = text.find(folder)) != std::string::npos;) {
    text.erase(at, folder.size());
  }
  return text;
}

const std::string plain_read =
    "the owl sleeps . | la chouette dort . \n"
    "my brother mends the roof . | mon frère répare le toit . \n"
    "is the soup hot ? | la soupe est - elle chaude ? \n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// ASCII text in an encoding of `width` bytes per character.
std::string widened(const std::string& ascii, int width, bool big_endian) {
  std::string out;
  for (const char c : ascii) {
    for (int i = 0; i < width; ++i) {
      out.push_back(i == (big_endian ? width - 1 : 0) ? c : '\0');
    }
  }
  return out;
}

}  // namespace

TEST_CASE("pairs: line ends, a byte order mark and a missing final newline make no difference") {
  const TemporaryFolder folder;
  CHECK(read(folder.file("plain.tsv", plain)) == plain_read);
  CHECK(read(folder.file("crlf.tsv", replaced(plain, "\n", "\r\n"))) == plain_read);
  CHECK(read(folder.file("crcrlf.tsv", replaced(plain, "\n", "\r\r\n"))) == plain_read);
  CHECK(read(folder.file("bom.tsv", "\xef\xbb\xbf" + plain)) == plain_read);
  CHECK(read(folder.file("no end.tsv", plain.substr(0, plain.size() - 1))) == plain_read);
  CHECK(read(folder.file("columns.tsv", replaced(plain, "\n", "\tCC-BY\tmore\n"))) == plain_read);
  CHECK(read(folder.file("-dash.tsv", plain)) == plain_read);
}

TEST_CASE("pairs: the raw text is kept") {
  const TemporaryFolder folder;
  const Pairs pairs = read_pairs(folder.file("a.tsv", "Hi, Ann!\tSalut\u00a0!\tx\r\n"));
  REQUIRE(pairs.pairs.size() == 1);
  CHECK(pairs.pairs[0].source_text == "Hi, Ann!");
  CHECK(pairs.pairs[0].target_text == "Salut\u00a0!");
}

TEST_CASE("pairs: bad lines are skipped with one note") {
  const TemporaryFolder folder;
  CHECK(read(folder.file("a.tsv", "one line\n" + plain + "two  lines\n")) ==
        plain_read + "note a.tsv: skipped 2 lines without a tab, the first is line 1\n");
  CHECK(read(folder.file("b.tsv", plain + "Fog.\t\tLe brouillard.\n")) ==
        plain_read + "note b.tsv: skipped 1 line with an empty side, the first is line 4\n");
  CHECK(
      read(folder.file("c.tsv", plain + "\tx\n\n \u200b\ty\nx\t\u00ad\nno tab\nx\t\xe9t\xe9\n")) ==
      plain_read +
          "note c.tsv: skipped 6 lines, the first is line 4: 1 blank, 1 without a tab, 3 with an empty side, "
          "1 not in UTF-8\n");
  CHECK(read(folder.file("d.tsv", "A\tB\tC\tD\n")) == "a | b \n");
}

TEST_CASE("pairs: other encodings are errors with a remedy") {
  const TemporaryFolder folder;
  struct Row {
    std::string bytes, encoding;
  };
  const Row rows[] = {{"\xff\xfe" + widened(plain, 2, false), "UTF-16"},
                      {"\xfe\xff" + widened(plain, 2, true), "UTF-16"},
                      {std::string("\xff\xfe\0\0", 4) + widened(plain, 4, false), "UTF-32"},
                      {std::string("\0\0\xfe\xff", 4) + widened(plain, 4, true), "UTF-32"},
                      {widened(plain, 2, false), "UTF-16LE"},
                      {widened(plain, 2, true), "UTF-16BE"},
                      {widened(plain, 4, false), "UTF-32LE"},
                      {widened(plain, 4, true), "UTF-32BE"}};
  for (const Row& row : rows) {
    const std::string path = folder.file("wide.tsv", row.bytes);
    CHECK(read(path) == "error wide.tsv: the text is " + row.encoding + "; convert it: iconv -f " +
                            row.encoding + " -t UTF-8 wide.tsv > utf8.txt");
    CHECK(read(folder.file("wide.tsv", gzip(row.bytes))).find("the text is " + row.encoding) !=
          std::string::npos);
  }
  std::string latin = "The owl.\tLa ch\xe8vre.\n\xc9t\xe9\tx\nx\tf\xeate\nx\ty\n";
  CHECK(
      read(folder.file("latin 1.tsv", latin)) ==
      "error latin 1.tsv: 3 of 4 lines are not in UTF-8, the first is line 1; convert it, such as: iconv -f "
      "WINDOWS-1252 -t UTF-8 'latin 1.tsv' > utf8.tsv");
}

TEST_CASE("pairs: gzip files") {
  const TemporaryFolder folder;
  CHECK(read(folder.file("a.tsv", gzip(plain))) == plain_read);
  const std::size_t half = plain.find('\n') - 5;
  CHECK(read(folder.file("members.gz", gzip(plain.substr(0, half)) + gzip(plain.substr(half)))) ==
        plain_read);
  CHECK(read(folder.file("zeros.gz", gzip(plain) + std::string(100, '\0'))) == plain_read);
  CHECK(read(folder.file("crlf.gz", gzip("\xef\xbb\xbf" + replaced(plain, "\n", "\r\n")))) == plain_read);
  const std::string packed = gzip(plain);
  for (std::size_t n = 2; n < packed.size(); ++n) {
    REQUIRE(read(folder.file("short.gz", packed.substr(0, n))).starts_with("error short.gz: the gzip data "));
  }
  std::string damaged = packed;
  damaged[packed.size() / 2] ^= 0x55;
  CHECK(read(folder.file("bad.gz", damaged)).starts_with("error bad.gz: the gzip data is damaged"));
  CHECK(read(folder.file("more.gz", packed + "text")) == "error more.gz: other data follows the gzip data");
  CHECK(read(folder.file("twice.gz", gzip(packed)))
            .starts_with("error twice.gz: the file is gzip-compressed twice"));
  CHECK(read(folder.file("empty.gz", gzip(""))) == "error empty.gz: no sentence pairs: the file is empty");
}

TEST_CASE("pairs: a decompression bomb is rejected") {
  const TemporaryFolder folder;
  const std::string bomb = gzip(std::string(std::size_t{80} << 20, 'a'));
  CHECK(bomb.size() < 200000);
  CHECK(read(folder.file("bomb.gz", bomb))
            .starts_with("error bomb.gz: decompresses to more than 200 times its size"));
  ReadOptions options;
  options.lines.max_bytes = 60;
  CHECK(read(folder.file("a.gz", gzip(plain)), options) ==
        "error a.gz: more than 60 bytes of text; split it");
  CHECK(read(folder.file("a.tsv", plain), options) == "error a.tsv: more than 60 bytes of text; split it");
}

TEST_CASE("pairs: other formats are errors that name the format") {
  const TemporaryFolder folder;
  using namespace std::string_literals;
  struct Row {
    std::string head, name;
  };
  const Row rows[] = {{"PK\x03\x04", "zip archive"},
                      {"\xfd"
                       "7zXZ\0"s,
                       "xz-compressed"},
                      {"BZh91AY&SY", "bzip2-compressed"},
                      {"\x28\xb5\x2f\xfd", "zstd-compressed"},
                      {"%PDF-1.7\n", "PDF document"},
                      {"\x89PNG\r\n\x1a\n", "PNG image"},
                      {"SQLite format 3\0"s, "SQLite"},
                      {"7z\xbc\xaf\x27\x1c", "7-Zip"}};
  for (const Row& row : rows) {
    const std::string message = read(folder.file("data.tsv", row.head + std::string("\x01\x02\tx\n")));
    CHECK(message.starts_with("error data.tsv: the file is "));
    CHECK(message.find(row.name) != std::string::npos);
  }
  const std::string binary =
      std::string("\x01\x00\x00\x00\x02\x00\x7f\x00\x00\x09\x00\x00\x03\x00\x00\x00\x00\x00", 18);
  CHECK(
      read(folder.file("data.bin", binary + binary)).starts_with("error data.bin: the file is binary data"));
  // A stray zero byte is text.
  CHECK(read(folder.file("nul.tsv", std::string("a \0 b\tc\0d\n", 10))) == "a b | c d \n");
}

TEST_CASE("pairs: CSV is an error with a remedy") {
  const TemporaryFolder folder;
  const std::string comma = read(folder.file("a.csv", "english,french\n\"An owl.\",\"Une chouette.\"\n"));
  CHECK(comma.starts_with("error a.csv: no sentence pairs: no line holds a tab; it looks like CSV with ','"));
  CHECK(comma.find("< a.csv > pairs.tsv") != std::string::npos);
  CHECK(read(folder.file("b.csv", "an owl;une chouette\na cat;un chat\n")).find("CSV with ';'") !=
        std::string::npos);
}

TEST_CASE("pairs: files without pairs") {
  const TemporaryFolder folder;
  CHECK(read(folder.file("none.tsv", "")) == "error none.tsv: no sentence pairs: the file is empty");
  CHECK(read(folder.file("bom.tsv", "\xef\xbb\xbf")) ==
        "error bom.tsv: no sentence pairs: the file is empty");
  CHECK(read(folder.file("text.txt", "A story.\nWith two lines.\n")) ==
        "error text.txt: no sentence pairs: 2 lines without a tab, the first is line 1");
  CHECK(read(folder.file("blank.tsv", "\n\n")) ==
        "error blank.tsv: no sentence pairs: 2 lines blank, the first is line 1");
}

TEST_CASE("pairs: lines that end in CR alone are rejected") {
  const TemporaryFolder folder;
  const std::string message = read(folder.file("mac.tsv", replaced(plain, "\n", "\r")));
  CHECK(message ==
        "error mac.tsv: its lines end in CR alone (3 CRs, 0 LFs); convert it: tr '\\r' '\\n' < mac.tsv > "
        "lf.tsv");
  CHECK(read(folder.file("mac.tsv", replaced(plain, "\n", "\r") + "\n"))
            .starts_with("error mac.tsv: its lines end in CR"));
  CHECK(read(folder.file("stray.tsv", "an\rowl\tune chouette\na cat\tun chat\n")) ==
        "an owl | une chouette \na cat | un chat \n");
}

TEST_CASE("pairs: only LF ends a line") {
  const TemporaryFolder folder;
  for (const char* other : {"\v", "\f", "\u0085", "\u2028", "\u2029", "\x1c", "\x1e"}) {
    CHECK(read(folder.file("a.tsv", "an" + std::string(other) + "owl\tune" + other + "chouette\na\tb\n")) ==
          "an owl | une chouette \na | b \n");
  }
}

TEST_CASE("pairs: long pairs and long lines") {
  const TemporaryFolder folder;
  std::string words;
  for (int i = 0; i < 5000; ++i) {
    words += "owl ";
  }
  const std::string path = folder.file("long.tsv", plain + words + "\t" + words + "\n" + "x\ty\n");
  CHECK(read(path, {.max_length = 50}) ==
        plain_read + "x | y \nnote long.tsv: dropped 1 pair longer than 50 tokens, in line 4\n");
  CHECK(read_pairs(path).pairs.size() == 5);
  CHECK(read_pairs(path).pairs[3].source.size() == 5000);
  ReadOptions options;
  options.lines.max_line_bytes = 100;
  CHECK(read(path, options) ==
        plain_read +
            "x | y \nnote long.tsv: skipped 1 line longer than the limit of bytes, the first is line 4\n");
  // The third column has no limit.
  CHECK(read(folder.file("third.tsv", "x\ty\t" + words + "\n"), options) == "x | y \n");
  CHECK(read(path, {.max_pairs = 2}).starts_with("error long.tsv: more than 2 pairs; use fewer"));
  CHECK(read(path, {.max_length = 1}) ==
        "x | y \nnote long.tsv: dropped 4 pairs longer than 1 tokens, the first in line 1\n");
}

TEST_CASE("pairs: duplicates and headers are noted and kept") {
  const TemporaryFolder folder;
  CHECK(read(folder.file("twice.tsv", plain + replaced(plain, "owl", "OWL"))) ==
        plain_read + plain_read + "note twice.tsv: 3 of 6 pairs repeat an earlier one; they are kept\n");
  CHECK(read(folder.file("head.tsv", "English\tGerman\nan owl\teine Eule\n")) ==
        "english | german \nan owl | eine eule \nnote head.tsv: line 1 looks like a header (english, "
        "german); it is kept "
        "as a pair: remove it with tail -n +2\n");
  CHECK(read(folder.file("cjk.tsv", "owl\t猫头鹰\n")) ==
        "owl | 猫 头 鹰 \nnote cjk.tsv: 1 of 1 pairs are written without spaces between words: each of "
        "their letters is a token\n");
}

TEST_CASE("pairs: anything but a regular file is rejected without blocking") {
  const TemporaryFolder folder;
  CHECK(read(folder / "missing.tsv") == "error missing.tsv: cannot be opened: No such file or directory");
  CHECK(read(folder.path().string()).find(": is a directory, not a file") != std::string::npos);
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(read(folder / "pipe") == "error pipe: is a pipe, not a file; give the name of a text file");
  CHECK(read("/dev/null").find("is a device, not a file") != std::string::npos);
  CHECK(read("") == "error read: the name of the file is empty");
  CHECK(read(folder / "no\x1b[31m.tsv") ==
        "error no\\x1b[31m.tsv: cannot be opened: No such file or directory");
  if (::geteuid() != 0) {
    const std::string secret = folder.file("secret.tsv", plain);
    ::chmod(secret.c_str(), 0);
    CHECK(read(secret) == "error secret.tsv: cannot be opened: Permission denied");
  } else {
    MESSAGE("root can read every file, so the unreadable file is skipped");
  }
}

TEST_CASE("pairs: a file that shrinks while it is read is an error") {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 20000; ++i) {
    lines += "an owl\tune chouette\n";
  }
  const std::string path = folder.file("a.tsv", lines);
  translator::LineReader reader(path);
  std::string line;
  REQUIRE(reader.next(line));
  std::filesystem::resize_file(path, 100000);
  const auto read_all = [&] {
    while (reader.next(line)) {
    }
  };
  CHECK_THROWS_WITH_AS(read_all(), doctest::Contains("shrank from 400000 to 100000 bytes while it was read"),
                       rill::Error);
}

TEST_CASE("pairs: parallel files") {
  const TemporaryFolder folder;
  const std::string english = folder.file("a.en",
                                          "\xef\xbb\xbf"
                                          "An owl.\r\nA cat.\r\n\r\nTab\there\r\n");
  const std::string french = folder.file("a.fr", gzip("Une chouette.\nUn chat.\nVide.\nLà-bas"));
  const Pairs pairs = read_parallel(english, french);
  REQUIRE(pairs.pairs.size() == 3);
  CHECK(pairs.pairs[0].source == Tokens{"an", "owl", "."});
  CHECK(pairs.pairs[2].source == Tokens{"tab", "here"});
  CHECK(pairs.pairs[2].target == Tokens{"là", "-", "bas"});
  REQUIRE(pairs.notes.size() == 1);
  CHECK(pairs.notes[0].find("a.fr: skipped 1 line with an empty side, the first is line 3") !=
        std::string::npos);
  const std::string longer = folder.file("b.fr", "1\n2\n3\n4\n5\n6\n7\n");
  CHECK_THROWS_WITH_AS(read_parallel(english, longer), doctest::Contains("a.en has 4 lines, "), rill::Error);
  CHECK_THROWS_WITH_AS(read_parallel(longer, english), doctest::Contains("b.fr has 7 lines, "), rill::Error);
  const std::string none = folder.file("none", "");
  CHECK_THROWS_WITH_AS(read_parallel(none, none), doctest::Contains("no sentence pairs"), rill::Error);
}

TEST_CASE("pairs: the messy files of RILL_DATA behave as expected") {
  const char* data = std::getenv("RILL_DATA");
  if (data == nullptr || *data == '\0') {
    std::puts("skipped: RILL_DATA does not name the folder of the test data");
    return;
  }
  const std::string folder = std::string(data) + "/messy/";
  std::ifstream table(folder + "EXPECTED.tsv");
  REQUIRE(table.is_open());
  const std::set<std::string> rejected = {"03", "19", "21", "23"};
  std::string row;
  std::getline(table, row);
  int files = 0;
  while (std::getline(table, row)) {
    std::vector<std::string> columns;
    std::istringstream stream(row);
    for (std::string column; std::getline(stream, column, '\t');) {
      columns.push_back(column);
    }
    REQUIRE(columns.size() == 5);
    CAPTURE(columns[0]);
    const std::string path = folder + columns[0];
    if (rejected.contains(columns[0].substr(0, columns[0].find('_')))) {
      CHECK_THROWS_AS(read_pairs(path, {.max_length = 100}), rill::Error);
    } else {
      CHECK(read_pairs(path, {.max_length = 100}).pairs.size() == std::stoul(columns[3]));
    }
    ++files;
  }
  CHECK(files > 20);
}
