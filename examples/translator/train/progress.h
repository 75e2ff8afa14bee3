/// How far the training is: a bar that moves on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace translator {

/// Where an epoch stands.
struct ProgressState {
  std::string label;       ///< Such as "epoch 3/20".
  std::int64_t done = 0;   ///< Batches done
  std::int64_t total = 0;  ///< of so many.
  double loss = 0;         ///< Mean over the real tokens so far.
  double tokens_per_s = 0;
  double seconds_left = 0;  ///< Negative: not known yet.
};

/// "epoch 3/20 [======>   ]  67 %  loss 1.234  12,345 tokens/s  0:42 left" in at most `columns` characters:
/// the bar takes what the rest leaves free.
std::string progress_bar(const ProgressState& state, int columns);

/// The same without the bar, for log files.
std::string progress_line(const ProgressState& state);

/// Shows the progress of one epoch on a stream, at most ten times a second on a terminal, every ten seconds
/// elsewhere.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  /// `label` as in ProgressState; `total` batches to come; `stream` is asked whether it is a terminal.
  Progress(std::string label, std::int64_t total, std::FILE* stream = stderr);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// After each batch: its number of real target tokens and the mean loss of them.
  void batch(std::int64_t tokens, double loss);

  /// Takes the bar off the terminal, so that other text can be printed; batch() brings it back.
  void clear();

  /// Mean loss over all tokens so far (0 if none).
  double loss() const;

  /// Target tokens a second since the start.
  double tokens_per_s() const;

  std::int64_t tokens() const { return tokens_; }
  double seconds() const;

 private:
  void show();
  void put(const std::string& text);

  std::FILE* stream_;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point begin_;
  Clock::time_point last_;
  ProgressState state_;
  std::int64_t tokens_ = 0;
  double loss_sum_ = 0;
};

/// "0:42", "12:05" or "3:04:05".
std::string duration(double seconds);

}  // namespace translator
