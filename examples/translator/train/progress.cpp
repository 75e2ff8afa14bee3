#include <translator/train/progress.h>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace translator {
namespace {

constexpr double terminal_interval = 0.1;  // seconds between updates
constexpr double log_interval = 10;

/// 12345 as "12,345".
std::string grouped(double number) {
  std::string digits = fmt::format("{:.0f}", std::max(0.0, number));
  for (std::size_t i = digits.size(); i > 3; i -= 3) {
    digits.insert(i - 3, ",");
  }
  return digits;
}

double fraction_done(const ProgressState& state) {
  return state.total <= 0
             ? 0
             : std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0, 1.0);
}

std::string figures(const ProgressState& state) {
  std::string text =
      fmt::format("{:3.0f} %  loss {:.3f}  {} tokens/s", std::floor(100 * fraction_done(state)), state.loss,
                  grouped(state.tokens_per_s));
  if (state.seconds_left >= 0) {
    text += "  " + duration(state.seconds_left) + " left";
  }
  return text;
}

int columns_of(std::FILE* stream) {
  winsize size{};
  const bool known = ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

std::string duration(double seconds) {
  const double bounded = std::isfinite(seconds) ? std::clamp(seconds, 0.0, 359999.0) : 359999.0;  // 99:59:59
  const auto whole = static_cast<long>(std::lround(bounded));
  const long hours = whole / 3600;
  const long minutes = whole / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
                   : fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string progress_bar(const ProgressState& state, int columns) {
  constexpr int narrowest = 5;
  const std::string right = figures(state);
  const int width = std::max(columns, 0);
  const int free =
      width - static_cast<int>(state.label.size() + right.size()) - 4;  // two spaces, two brackets
  if (free < narrowest) {
    return progress_line(state).substr(0, static_cast<std::size_t>(width));
  }
  const auto cells = static_cast<std::size_t>(std::min(free, 40));
  const auto full = static_cast<std::size_t>(fraction_done(state) * static_cast<double>(cells));
  std::string bar(full, '=');
  if (full < cells) {
    bar += '>';
  }
  bar.resize(cells, ' ');
  return fmt::format("{} [{}] {}", state.label, bar, right);
}

std::string progress_line(const ProgressState& state) {
  return fmt::format("{} {}", state.label, figures(state));
}

Progress::Progress(std::string label, std::int64_t total, std::FILE* stream)
    : stream_(stream),
      terminal_(::isatty(::fileno(stream)) == 1),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_) {
  state_.label = std::move(label);
  state_.total = total;
}

Progress::~Progress() { clear(); }

void Progress::batch(std::int64_t tokens, double loss) {
  tokens_ += tokens;
  loss_sum_ += loss * static_cast<double>(tokens);
  ++state_.done;
  const auto now = std::chrono::steady_clock::now();
  if (seconds_between(last_, now) >= (terminal_ ? terminal_interval : log_interval)) {
    last_ = now;
    show();
  }
}

void Progress::show() {
  state_.loss = loss();
  state_.tokens_per_s = tokens_per_s();
  state_.seconds_left = seconds() / static_cast<double>(state_.done) *
                        static_cast<double>(std::max<std::int64_t>(state_.total - state_.done, 0));
  if (terminal_) {
    put("\r" + progress_bar(state_, columns_of(stream_) - 1) + "\x1b[K");
    shown_ = true;
  } else {
    put(progress_line(state_) + "\n");
  }
}

/// Write errors are ignored: they are no reason to stop the training.
void Progress::put(const std::string& text) {
  std::fputs(text.c_str(), stream_);
  std::fflush(stream_);
}

void Progress::clear() {
  if (shown_) {
    put("\r\x1b[K");
    shown_ = false;
  }
}

double Progress::loss() const { return tokens_ == 0 ? 0 : loss_sum_ / static_cast<double>(tokens_); }

double Progress::seconds() const { return seconds_between(begin_, std::chrono::steady_clock::now()); }

double Progress::tokens_per_s() const {
  const double elapsed = seconds();
  return elapsed > 0 ? static_cast<double>(tokens_) / elapsed : 0;
}

}  // namespace translator
