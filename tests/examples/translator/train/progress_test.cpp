#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include <examples/temporary_folder.h>
#include <translator/train/progress.h>

using translator::duration;
using translator::Progress;
using translator::progress_bar;
using translator::progress_line;
using translator::ProgressState;

TEST_CASE("progress: durations") {
  CHECK(duration(0) == "0:00");
  CHECK(duration(42.4) == "0:42");
  CHECK(duration(59.6) == "1:00");
  CHECK(duration(725) == "12:05");
  CHECK(duration(11045) == "3:04:05");
  CHECK(duration(-5) == "0:00");
  CHECK(duration(INFINITY) == "99:59:59");
}

TEST_CASE("progress: the bar fits the given columns") {
  ProgressState state{.label = "epoch 3/20",
                      .done = 30,
                      .total = 60,
                      .loss = 1.2345,
                      .tokens_per_s = 1234567,
                      .seconds_left = 42};
  CHECK(progress_line(state) == "epoch 3/20  50 %  loss 1.234  1,234,567 tokens/s  0:42 left");
  CHECK(progress_bar(state, 85) ==
        "epoch 3/20 [===========>           ]  50 %  loss 1.234  1,234,567 tokens/s  0:42 left");
  for (int columns = 0; columns < 200; ++columns) {
    CHECK(progress_bar(state, columns).size() <= static_cast<std::size_t>(columns));
  }
  state.done = 60;
  state.seconds_left = -1;
  CHECK(progress_bar(state, 200) ==
        "epoch 3/20 [========================================] 100 %  loss 1.234  1,234,567 tokens/s");
  state.total = 0;
  CHECK(progress_bar(state, 80).find("  0 %") != std::string::npos);
}

TEST_CASE("progress: the loss is the mean over tokens, and files contain no control characters") {
  const TemporaryFolder folder;
  std::FILE* file = std::fopen((folder / "log").c_str(), "w");
  REQUIRE(file != nullptr);
  {
    Progress progress("epoch 1/1", 3, file);
    CHECK(progress.loss() == 0);
    progress.batch(10, 2.0);
    progress.batch(30, 1.0);
    progress.batch(0, 99.0);
    CHECK(progress.loss() == doctest::Approx(1.25));
    CHECK(progress.tokens() == 40);
    CHECK(progress.tokens_per_s() > 0);
    progress.clear();
  }
  std::fclose(file);
  CHECK(bytes_of(folder / "log").find_first_of("\r\x1b") == std::string::npos);
}
