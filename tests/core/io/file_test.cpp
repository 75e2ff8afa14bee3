#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <rill/core/error.h>
#include <rill/core/io/file.h>

namespace fs = std::filesystem;
using rill::AtomicFile;
using rill::read_file;
using rill::write_file_atomically;

namespace {

/// A temporary folder, removed at the end of the test.
struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "rill-file-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }

  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }

  fs::path path;
};

std::string contents(const fs::path& path) { return read_file(path, 1 << 20); }

}  // namespace

TEST_CASE("file: a write creates or replaces the whole file and leaves no temporary file") {
  const Folder folder;
  const fs::path path = folder.path / "a file";
  write_file_atomically(path, "one");
  CHECK(contents(path) == "one");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  write_file_atomically(path, std::string("\0two", 4));
  CHECK(contents(path) == std::string("\0two", 4));
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  write_file_atomically(path, "");
  CHECK(contents(path).empty());
  CHECK(folder.entries() == 1);
}

TEST_CASE("file: without commit the old file is kept") {
  const Folder folder;
  const fs::path path = folder.path / "a";
  write_file_atomically(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
    CHECK(contents(path) == "old");
    CHECK(folder.entries() == 2);
  }
  CHECK(contents(path) == "old");
  CHECK(folder.entries() == 1);
  AtomicFile file(path);
  file.write("new ");
  file.write("text");
  file.commit();
  CHECK(contents(path) == "new text");
  CHECK_THROWS_WITH_AS(file.write("x"), doctest::Contains("already committed"), rill::Error);
  CHECK_THROWS_AS(file.commit(), rill::Error);
}

TEST_CASE("file: writing through a symbolic link keeps the link") {
  const Folder folder;
  fs::create_directory(folder.path / "sub");
  write_file_atomically(folder.path / "sub" / "real", "old");
  fs::create_symlink("sub/real", folder.path / "link");
  fs::create_symlink("link", folder.path / "link2");
  write_file_atomically(folder.path / "link2", "new");
  CHECK(contents(folder.path / "sub" / "real") == "new");
  CHECK(fs::is_symlink(folder.path / "link"));
  CHECK(fs::is_symlink(folder.path / "link2"));
  fs::create_symlink("loop", folder.path / "loop");
  CHECK_THROWS_WITH_AS(write_file_atomically(folder.path / "loop", "x"),
                       doctest::Contains("too many levels of symbolic links"), rill::Error);
}

TEST_CASE("file: an error names the path that cannot be written") {
  const Folder folder;
  CHECK_THROWS_WITH_AS(write_file_atomically(folder.path, "x"), doctest::Contains("the path is a directory"),
                       rill::Error);
  CHECK_THROWS_WITH_AS(write_file_atomically(folder.path / "none" / "a", "x"),
                       doctest::Contains("none/a: cannot create a file there: No such file or directory"),
                       rill::Error);
  CHECK_THROWS_WITH_AS(write_file_atomically("/dev/null", "x"),
                       doctest::Contains("the path is a device or pipe"), rill::Error);
  CHECK_THROWS_AS(write_file_atomically("", "x"), rill::Error);
  CHECK_THROWS_AS(write_file_atomically(folder.path / std::string(300, 'a'), "x"), rill::Error);
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("file: a full disk leaves the old file") {
  const Folder folder;
  const fs::path path = folder.path / "a";
  write_file_atomically(path, "old");
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const rlimit small{4096, limit.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string message;
  try {
    write_file_atomically(path, std::string(100000, 'x'));
  } catch (const rill::Error& error) {
    message = error.what();
  }
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  std::signal(SIGXFSZ, old_handler);
  CHECK(message.find("/a: write failed: File too large; the file is unchanged") != std::string::npos);
  CHECK(contents(path) == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("file: read_file checks the size limit and the kind of file") {
  const Folder folder;
  const fs::path path = folder.path / "a";
  const std::string text(100000, 'x');
  write_file_atomically(path, text);
  CHECK(read_file(path, 100000) == text);
  CHECK_THROWS_WITH_AS(read_file(path, 99999), doctest::Contains("the file has more than 99999 bytes"),
                       rill::Error);
  CHECK_THROWS_WITH_AS(read_file(folder.path / "none", 9), doctest::Contains("none: No such file"),
                       rill::Error);
  CHECK_THROWS_WITH_AS(read_file(folder.path, 9), doctest::Contains("not a regular file"), rill::Error);
  CHECK_THROWS_WITH_AS(read_file("/dev/zero", 9), doctest::Contains("not a regular file"), rill::Error);
  REQUIRE(::mkfifo((folder.path / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(read_file(folder.path / "pipe", 9), doctest::Contains("not a regular file"),
                       rill::Error);
  CHECK_FALSE(read_file("/proc/self/status", 1 << 20).empty());  // reports size 0
}

TEST_CASE("file: temporary files of a killed process with the same id are skipped") {
  const Folder folder;
  for (int i = 0; i < 200; ++i)
    std::ofstream(folder.path / fmt::format(".a.{}-{}.part", ::getpid(), i)) << "old";
  write_file_atomically(folder.path / "a", "new");
  CHECK(contents(folder.path / "a") == "new");
  CHECK(folder.entries() == 201);
}

TEST_CASE("file: sync does not publish the file, commit does") {
  const Folder folder;
  AtomicFile file(folder.path / "a");
  file.write("text");
  file.sync();
  CHECK_FALSE(fs::exists(folder.path / "a"));
  file.commit();
  CHECK(contents(folder.path / "a") == "text");
  CHECK_THROWS_AS(file.sync(), rill::Error);
}
