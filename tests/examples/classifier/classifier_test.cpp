#include <doctest/doctest.h>

#include <fstream>

#include <zlib.h>

#include <classifier/datasets.h>
#include <classifier/fit.h>
#include <classifier/idx.h>
#include <examples/temporary_folder.h>
#include <rill/core/core.h>

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes idx(std::initializer_list<std::uint8_t> sizes, const Bytes& values) {
  Bytes out = {0, 0, 8, static_cast<std::uint8_t>(sizes.size())};
  for (std::uint8_t size : sizes) out.insert(out.end(), {0, 0, 0, size});
  out.insert(out.end(), values.begin(), values.end());
  return out;
}

void write(const std::filesystem::path& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

TEST_CASE("classifier: IDX files are read, compressed or not") {
  const TemporaryFolder folder;
  const Bytes file = idx({2, 1, 3}, {0, 128, 255, 1, 2, 3});
  write(folder.path() / "plain", file);
  gzFile compressed = gzopen((folder.path() / "compressed.gz").c_str(), "wb");
  gzwrite(compressed, file.data(), static_cast<unsigned>(file.size()));
  gzclose(compressed);
  for (const char* name : {"plain", "compressed.gz"}) {
    const classifier::Idx read = classifier::read_idx(folder.path() / name);
    CHECK(read.sizes == std::vector<std::int64_t>{2, 1, 3});
    CHECK(read.bytes == Bytes{0, 128, 255, 1, 2, 3});
  }
  write(folder.path() / "labels", idx({2}, {7, 0}));
  const classifier::Dataset data =
      classifier::read_images(folder.path() / "plain", folder.path() / "labels", 4);
  CHECK(data.x.shape() == rill::Shape{2, 1, 4});
  CHECK(data.x.to_vector()[2] == 1);
  CHECK(data.x.to_vector()[3] == 0);
  CHECK(data.y.to_vector<std::int64_t>() == std::vector<std::int64_t>{7, 0});
}

TEST_CASE("classifier: malformed IDX files are errors that name the file") {
  const TemporaryFolder folder;
  const auto check_rejects = [&](const Bytes& bytes, const char* why) {
    write(folder.path() / "bad", bytes);
    CHECK_THROWS_WITH_AS(classifier::read_idx(folder.path() / "bad"), doctest::Contains(why), rill::Error);
  };
  check_rejects({}, "ends 4 bytes early");
  check_rejects({1, 2, 3, 4}, "not an IDX file");
  check_rejects({0, 0, 13, 1, 0, 0, 0, 1, 0, 0, 0, 0}, "elements of type 0xd");
  check_rejects(idx({3}, {1, 2}), "ends 1 bytes early");
  check_rejects(idx({1}, {1, 2}), "longer than its sizes say");
  check_rejects({0, 0, 8, 2, 255, 255, 255, 255, 255, 255, 255, 255, 1}, "more than");
  CHECK_THROWS_AS(classifier::read_idx(folder.path()), rill::Error);
  CHECK_THROWS_AS(classifier::read_idx(folder.path() / "missing"), rill::Error);
  write(folder.path() / "images", idx({2, 1, 1}, {1, 2}));
  write(folder.path() / "labels", idx({3}, {1, 2, 3}));
  CHECK_THROWS_WITH(classifier::read_images(folder.path() / "images", folder.path() / "labels"),
                    doctest::Contains("2 images"));
}

TEST_CASE("classifier: the adding problem marks one value in each half and is labelled with their sum") {
  rill::Rng rng(3);
  const classifier::Dataset data = classifier::adding_problem(20, 7, rng);
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const rill::Tensor values = data.x.select(0, i).select(1, 0), marks = data.x.select(0, i).select(1, 1);
    CHECK(rill::sum(marks).item() == 2);
    CHECK(rill::sum(marks.narrow(0, 0, 3)).item() == 1);
    CHECK(rill::sum(values * marks).item() ==
          doctest::Approx(data.y.to_vector()[static_cast<std::size_t>(i)]));
  }
  CHECK_THROWS_AS(classifier::adding_problem(1, 1, rng), rill::Error);
}

TEST_CASE("classifier: every cell learns to tell rising from falling sequences, also when padded") {
  for (const auto cell : rill::nn::cells) {
    rill::Rng rng(1);
    classifier::Dataset data{rill::zeros({64, 6, 1}), rill::zeros({64}, rill::int64)};
    for (std::int64_t i = 0; i < 64; ++i) {
      data.y.mutable_data<std::int64_t>()[i] = i % 2;
      for (int t = 0; t < 6; ++t)
        data.x.mutable_data<float>()[i * 6 + t] = static_cast<float>((i % 2 ? t : 5 - t) + rng.uniform()) / 6;
    }
    classifier::SequenceClassifier model({.cell = cell, .input_size = 1, .hidden_size = 8, .output_size = 2},
                                         rng);
    const classifier::Score score =
        classifier::fit(model, data, data, {.epochs = 20, .batch = 16, .lr = 2e-2});
    CHECK(score.accuracy > 0.95);
    const rill::Tensor padded = rill::cat({data.x, rill::ones({64, 3, 1})}, 1);
    const rill::Tensor lengths = rill::full({64}, 6, rill::int64);
    CHECK(rill::amax(rill::abs(model(padded, lengths) - model(data.x))).item() < 1e-6);
  }
}

TEST_CASE("classifier: a clip of 0 means no clipping") {
  rill::Rng rng(1);
  const classifier::Dataset data{rill::randn({4, 3, 1}, rng), rill::zeros({4}, rill::int64)};
  classifier::SequenceClassifier model({.input_size = 1, .hidden_size = 2, .output_size = 2}, rng);
  const rill::Tensor before = model.parameters()[0].clone();
  classifier::fit(model, data, data, {.epochs = 1, .batch = 4, .clip = 0});
  CHECK(rill::amax(rill::abs(model.parameters()[0].detach() - before.detach())).item() > 0);
}
