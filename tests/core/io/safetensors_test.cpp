#include <rill/core/io/safetensors.h>

#include <doctest/doctest.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace rill;
namespace fs = std::filesystem;

/// A temporary folder, removed at the end of the test.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "rill_safetensors_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// A file with this header and `data` zero bytes after it; `announced` is the header length that it states.
std::vector<std::byte> file_of(const std::string& header, std::size_t data, std::uint64_t announced) {
  std::string text(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) text[i] = static_cast<char>(announced >> (8 * i) & 0xff);
  return bytes_of(text + header + std::string(data, '\0'));
}
std::vector<std::byte> file_of(const std::string& header, std::size_t data) {
  return file_of(header, data, header.size());
}

std::string message_of(const std::vector<std::byte>& bytes) {
  try {
    safetensors_from_bytes(bytes, "x.safetensors");
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

/// The header of one tensor "a".
std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

void check_same(const Tensor& a, const Tensor& b) {
  CHECK(a.dtype() == b.dtype());
  CHECK(a.shape() == b.shape());
  CHECK(a.to_vector() == b.to_vector());
}

/// Every dtype, ranks 0 to 8, sizes of 0, names that JSON must escape.
NamedTensors sample() {
  return {{"bool", tensor({true, false, true}, {3})},
          {"float", tensor({1.5F, -0.25F, 3e38F, 1e-45F, 0.F, -0.F}, {2, 3})},
          {"double", tensor({1e-300, 0.1}, {1, 2, 1, 1, 1, 1, 1, 1})},
          {"long", tensor({std::int64_t{-9'223'372'036'854'775'807}, std::int64_t{7}}, {2})},
          {"scalar", scalar(4, float64)},
          {"empty", zeros({3, 0, 2})},
          {"\"quoted\"\\\n\t", tensor({2.F}, {1})},
          {"Größe 語 🙂", tensor({3.F}, {1})},
          {"", tensor({4.F}, {1})}};
}

TEST_CASE("safetensors: a round trip keeps tensors, order and metadata") {
  const Folder folder;
  const std::map<std::string, std::string> metadata{{"format", "pt"}, {"quote\"", "zwölf\n"}};
  save_safetensors(folder / "a.safetensors", sample(), metadata);
  const SafetensorsFile file = load_safetensors(folder / "a.safetensors");
  CHECK(file.metadata == metadata);
  REQUIRE(file.tensors.size() == sample().size());
  for (std::size_t i = 0; i < sample().size(); ++i) {
    CHECK(file.tensors[i].first == sample()[i].first);
    check_same(file.tensors[i].second, sample()[i].second);
  }
  CHECK(std::bit_cast<std::uint32_t>(file.at("float").data<float>()[5]) == 0x80000000U);
}

TEST_CASE("safetensors: a file without tensors is valid") {
  const SafetensorsFile file = safetensors_from_bytes(safetensors_to_bytes({}));
  CHECK(file.tensors.empty());
  CHECK(file.metadata.empty());
}

TEST_CASE("safetensors: the bytes follow the format") {
  const std::vector<std::byte> bytes =
      safetensors_to_bytes({{"x", tensor({1.F, -2.F}, {2, 1})}}, {{"k", "v"}});
  const std::string header =
      R"({"__metadata__":{"k":"v"},"x":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  std::vector<std::byte> expected = file_of(padded, 8);
  const std::vector<unsigned char> values{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0};
  for (std::size_t i = 0; i < 8; ++i) expected[8 + padded.size() + i] = std::byte{values[i]};
  CHECK(bytes == expected);
}

TEST_CASE("safetensors: every element is aligned in the file") {
  const std::vector<std::byte> bytes = safetensors_to_bytes({{"flag", tensor({true}, {1})},
                                                             {"small", tensor({1.F}, {1})},
                                                             {"wide", tensor({2.}, {1})},
                                                             {"whole", tensor({std::int64_t{3}}, {1})}});
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  CHECK(text.find(R"("wide":{"dtype":"F64","shape":[1],"data_offsets":[0,8]})") != std::string::npos);
  CHECK(text.find(R"("whole":{"dtype":"I64","shape":[1],"data_offsets":[8,16]})") != std::string::npos);
  CHECK(text.find(R"("small":{"dtype":"F32","shape":[1],"data_offsets":[16,20]})") != std::string::npos);
  CHECK(text.find(R"("flag":{"dtype":"BOOL","shape":[1],"data_offsets":[20,21]})") != std::string::npos);
}

TEST_CASE("safetensors: strided tensors, views and leaves that require gradients are written row-major") {
  Tensor base = tensor({1.F, 2.F, 3.F, 4.F, 5.F, 6.F}, {2, 3}).set_requires_grad();
  const SafetensorsFile file =
      safetensors_from_bytes(safetensors_to_bytes({{"t", base.detach().t()},
                                                   {"column", base.detach().select(1, 1)},
                                                   {"wide", scalar(7).expand({2, 2})},
                                                   {"leaf", base}}));
  check_same(file.at("t"), tensor({1.F, 4.F, 2.F, 5.F, 3.F, 6.F}, {3, 2}));
  check_same(file.at("column"), tensor({2.F, 5.F}, {2}));
  check_same(file.at("wide"), tensor({7.F, 7.F, 7.F, 7.F}, {2, 2}));
  check_same(file.at("leaf"), base);
  CHECK(!file.at("leaf").requires_grad());
}

TEST_CASE("safetensors: lookup by name, and an error for a missing name lists those in the file") {
  const SafetensorsFile file =
      safetensors_from_bytes(safetensors_to_bytes({{"a", scalar(1)}, {"b", scalar(2)}}));
  CHECK(file.find("b")->item() == 2);
  CHECK(file.find("c") == nullptr);
  CHECK_THROWS_WITH_AS(file.at("c"), R"(safetensors: there is no tensor "c"; the file has "a", "b")", Error);
}

struct Bad {
  const char* what;  ///< a part of the expected message
  std::vector<std::byte> bytes;
};

std::vector<Bad> bad_files() {
  const std::string good = entry("F32", "[2]", "[0,8]");
  const std::string two = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)";
  return {
      {"0 bytes are too short", {}},
      {"7 bytes are too short", bytes_of("1234567")},
      {"length is 9223372036854775808 bytes", file_of(good, 8, std::uint64_t{1} << 63)},
      {"length is 18446744073709551615 bytes", file_of(good, 8, ~std::uint64_t{0})},
      {"the header length is", file_of(good, 0, good.size() + 1)},
      {"does not begin with '{'", file_of("", 0)},
      {"does not begin with '{'", file_of(" " + good, 8)},
      {"does not begin with '{'", file_of("[]", 0)},
      {"does not begin with '{'", file_of("\xEF\xBB\xBF" + good, 8)},
      {"invalid JSON", file_of("{", 0)},
      {"invalid JSON", file_of(R"({"a":)", 0)},
      {"invalid JSON", file_of(good + "}", 8)},
      {"invalid JSON", file_of(good + good, 8)},
      {"invalid JSON", file_of("{/*c*/}", 0)},
      {"invalid JSON", file_of("{\"\xff\":1}", 0)},
      {"invalid JSON", file_of(entry("F32", "[1e999]", "[0,8]"), 8)},
      {"invalid JSON", file_of(entry("F32", "[NaN]", "[0,8]"), 8)},
      {"zero byte", file_of(good + std::string(1, '\0'), 8)},
      {": unexpected ", file_of(R"({"a":)" + std::string(100'000, '['), 0)},
      {": unexpected ", file_of(R"({"a":{"dtype":)" + std::string(100'000, '{'), 0)},
      {": unexpected ", file_of(R"({"a":{"dtype":{"a":1}}})", 0)},
      {"entry \"a\": unexpected a number", file_of(R"({"a":1})", 0)},
      {"entry \"a\": unexpected null", file_of(R"({"a":null})", 0)},
      {"entry \"a\": unexpected an array", file_of(R"({"a":[]})", 0)},
      {"tensor \"a\", \"dtype\": unexpected a number", file_of(R"({"a":{"dtype":1}})", 0)},
      {"tensor \"a\", \"shape\": unexpected a string", file_of(entry("F32", R"("2")", "[0,8]"), 8)},
      {"tensor \"a\", \"shape\": unexpected an array", file_of(entry("F32", "[[2]]", "[0,8]"), 8)},
      {"tensor \"a\", \"shape\": unexpected a boolean", file_of(entry("F32", "[true]", "[0,8]"), 8)},
      {"tensor \"a\", \"more\": unexpected a number",
       file_of(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4],"more":1}})", 4)},
      {"tensor \"a\" has no dtype", file_of(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8)},
      {"tensor \"a\" has no shape", file_of(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", 8)},
      {"tensor \"a\" does not have two data_offsets", file_of(R"({"a":{"dtype":"F32","shape":[2]}})", 8)},
      {"tensor \"a\" does not have two data_offsets", file_of(entry("F32", "[2]", "[0]"), 8)},
      {"more than two data_offsets", file_of(entry("F32", "[2]", "[0,8,8]"), 8)},
      {"duplicate dtype", file_of(R"({"a":{"dtype":"F32","dtype":"F32"}})", 8)},
      {"duplicate shape", file_of(R"({"a":{"shape":[2],"shape":[2]}})", 8)},
      {"duplicate data_offsets", file_of(R"({"a":{"data_offsets":[0,8],"data_offsets":[0,8]}})", 8)},
      {"duplicate tensor \"a\"",
       file_of(two + R"("a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})", 16)},
      {"duplicate tensor \"a\"",
       file_of(two + R"("\u0061":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})", 16)},
      {"duplicate __metadata__", file_of(R"({"__metadata__":{},"__metadata__":{}})", 0)},
      {"duplicate metadata \"k\"", file_of(R"({"__metadata__":{"k":"1","k":"2"}})", 0)},
      {"metadata \"k\": unexpected a number", file_of(R"({"__metadata__":{"k":1}})", 0)},
      {"metadata \"k\": unexpected an object", file_of(R"({"__metadata__":{"k":{}}})", 0)},
      {"unexpected a string", file_of(R"({"__metadata__":"k"})", 0)},
      {"tensor \"a\" has dtype \"F16\"", file_of(entry("F16", "[2]", "[0,4]"), 4)},
      {"tensor \"a\" has dtype \"BF16\"", file_of(entry("BF16", "[2]", "[0,4]"), 4)},
      {"tensor \"a\" has dtype \"I32\"", file_of(entry("I32", "[2]", "[0,8]"), 8)},
      {"tensor \"a\" has dtype \"U8\"", file_of(entry("U8", "[2]", "[0,2]"), 2)},
      {"tensor \"a\" has dtype \"f32\"", file_of(entry("f32", "[2]", "[0,8]"), 8)},
      {"-2 is negative", file_of(entry("F32", "[-2]", "[0,8]"), 8)},
      {"-8 is negative", file_of(entry("F32", "[2]", "[-8,0]"), 8)},
      {"\"2.5\" is not a 64-bit integer", file_of(entry("F32", "[2.5]", "[0,8]"), 8)},
      {"\"2.0\" is not a 64-bit integer", file_of(entry("F32", "[2.0]", "[0,8]"), 8)},
      {"is not a 64-bit integer", file_of(entry("F32", "[99999999999999999999]", "[0,8]"), 8)},
      {"exceeds 2^63 - 1", file_of(entry("F32", "[9223372036854775808]", "[0,8]"), 8)},
      {"more than 8 dimensions", file_of(entry("F32", "[2,1,1,1,1,1,1,1,1]", "[0,8]"), 8)},
      {"more than 2^63 - 1 bytes", file_of(entry("F32", "[4611686018427387904,2]", "[0,8]"), 8)},
      {"more than 2^63 - 1 bytes", file_of(entry("F64", "[2305843009213693952]", "[0,8]"), 8)},
      {"F32 [2] needs 8 bytes, but data_offsets span 4", file_of(entry("F32", "[2]", "[0,4]"), 4)},
      {"F32 [] needs 4 bytes, but data_offsets span 0", file_of(entry("F32", "[]", "[0,0]"), 0)},
      {"F32 [0, 3] needs 0 bytes, but data_offsets span 8", file_of(entry("F32", "[0,3]", "[0,8]"), 8)},
      {"begins at byte 8 and ends at 0", file_of(entry("F32", "[2]", "[8,0]"), 8)},
      {"ends at byte 8 of 7", file_of(good, 7)},
      {"ends at byte 18446744073709551615 of 8",
       file_of(entry("F32", "[2]", "[18446744073709551607,18446744073709551615]"), 8)},
      {"bytes 8 to 9 at the end belong to no tensor", file_of(good, 9)},
      {"bytes 0 to 4 belong to no tensor", file_of(entry("F32", "[1]", "[4,8]"), 8)},
      {"overlaps one that ends at 8",
       file_of(two + R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8)},
      {"overlaps one that ends at 8",
       file_of(two + R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12)},
      {"bytes 8 to 12 belong to no tensor",
       file_of(two + R"("b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", 16)},
  };
}

TEST_CASE("safetensors: a malformed file is an error that names the file and the defect") {
  for (const Bad& bad : bad_files()) {
    const std::string message = message_of(bad.bytes);
    CAPTURE(message);
    CAPTURE(bad.what);
    CHECK(message.find("safetensors: x.safetensors: ") == 0);
    CHECK(message.find(bad.what) != std::string::npos);
  }
}

TEST_CASE("safetensors: a BOOL that is neither 0 nor 1 is an error") {
  std::vector<std::byte> bytes = safetensors_to_bytes({{"mask", tensor({true, false}, {2})}});
  bytes.back() = std::byte{2};
  CHECK(message_of(bytes).find("tensor \"mask\": element 1 is 2") != std::string::npos);
}

TEST_CASE("safetensors: names in messages are truncated and escaped") {
  const std::string name(100'000, 'n');
  const std::string message = message_of(file_of("{\"" + name + "\":1}", 0));
  CHECK(message.size() < 300);
  CHECK(message_of(file_of(R"({"\u001b[31m":1})", 0)).find('\x1b') == std::string::npos);
}

TEST_CASE("safetensors: a header over 100 MB is rejected") {
  const std::string header = "{}" + std::string(100'000'000, ' ');
  CHECK(message_of(file_of(header, 0)).find("the maximum is 100000000") != std::string::npos);
}

TEST_CASE("safetensors: a truncated file is rejected and a corrupted one is read or rejected") {
  const std::vector<std::byte> good = safetensors_to_bytes(
      {{"a", tensor({true, false}, {2})}, {"b", tensor({1.F, 2.F}, {2, 1})}, {"c", scalar(1, float64)}},
      {{"k", "v"}});
  std::size_t rejected = 0;
  const auto parse = [&](const std::vector<std::byte>& bytes) {
    rejected += message_of(bytes) != "no error";
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    parse({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(i)});
    CHECK(rejected == i + 1);
  }
  rejected = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (int flip : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}) {
      std::vector<std::byte> bytes = good;
      bytes[i] ^= static_cast<std::byte>(flip);
      parse(bytes);
    }
  }
  CHECK(rejected > good.size());
}

TEST_CASE("safetensors: an unreadable file is an error that names the path") {
  const Folder folder;
  const auto message = [](const fs::path& path) {
    try {
      load_safetensors(path);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  CHECK(message(folder / "none").find((folder / "none").string()) != std::string::npos);
  CHECK(message(folder / "").find("not a regular file") != std::string::npos);
  CHECK(message("/dev/zero").find("not a regular file") != std::string::npos);
  std::ofstream(folder / "empty").close();
  CHECK(message(folder / "empty").find("0 bytes are too short") != std::string::npos);
  if (geteuid() != 0) {
    fs::permissions(folder / "empty", fs::perms::none);
    CHECK(message(folder / "empty").find("cannot be opened") != std::string::npos);
  }
}

TEST_CASE("safetensors: sizes are checked against the file before memory is allocated") {
  const Folder folder;
  const std::string header = entry("F32", "[1000000000000]", "[0,4000000000000]");
  {
    std::ofstream stream(folder / "huge", std::ios::binary);
    const std::vector<std::byte> bytes = file_of(header, 0);
    stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  fs::resize_file(folder / "huge", 4'000'000);
  CHECK_THROWS_AS(load_safetensors(folder / "huge"), Error);
}

TEST_CASE("safetensors: a failed save leaves the old file") {
  const Folder folder;
  const fs::path path = folder / "a.safetensors";
  save_safetensors(path, {{"a", scalar(1)}});
  CHECK_THROWS_WITH_AS(save_safetensors(path, {{"a", scalar(2)}, {"a", scalar(3)}}),
                       R"(safetensors: two tensors are named "a")", Error);
  CHECK_THROWS_WITH_AS(save_safetensors(path, {{"a", Tensor()}}), R"(safetensors: tensor "a" is undefined)",
                       Error);
  CHECK_THROWS_WITH_AS(save_safetensors(path, {{"__metadata__", scalar(2)}}),
                       "safetensors: a tensor cannot be named __metadata__", Error);
  CHECK_THROWS_WITH_AS(save_safetensors(path, {{"\xff", scalar(2)}}),
                       R"(safetensors: the name "\xff" is not UTF-8)", Error);
  CHECK_THROWS_AS(save_safetensors(path, {}, {{"k", "\xc3"}}), Error);
  CHECK_THROWS_AS(save_safetensors(folder / "none/a.safetensors", {}), Error);
  CHECK(load_safetensors(path).at("a").item() == 1);
  CHECK(std::distance(fs::directory_iterator(path.parent_path()), fs::directory_iterator()) == 1);
}

}  // namespace
