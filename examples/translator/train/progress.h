/// Progress of the training: a bar on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace translator {

struct ProgressState {
  std::string label;       ///< such as "epoch 3/20"
  std::int64_t done = 0;   ///< batches
  std::int64_t total = 0;  ///< batches
  double loss = 0;         ///< mean over the tokens so far
  double tokens_per_s = 0;
  double seconds_left = 0;  ///< negative: unknown yet
};

/// "epoch 3/20 [======>   ]  67 %  loss 1.234  12,345 tokens/s  0:42 left" in at most `columns` characters;
/// the bar fills the space that the rest leaves.
std::string progress_bar(const ProgressState& state, int columns);

/// The same without the bar, for log files.
std::string progress_line(const ProgressState& state);

/// Shows the progress of one epoch on a stream: at most ten times per second on a terminal, every ten seconds
/// elsewhere.
class Progress {
 public:
  /// `label` as in ProgressState; `total` batches; a bar is shown if `stream` is a terminal.
  Progress(std::string label, std::int64_t total, std::FILE* stream = stderr);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// Counts a batch: its target tokens, padding not included, and their mean loss.
  void batch(std::int64_t tokens, double loss);

  /// Removes the bar from the terminal, so that other text can be printed; batch() shows it again.
  void clear();

  /// Mean loss over all tokens so far (0 if none).
  double loss() const;

  /// Target tokens per second since the start.
  double tokens_per_s() const;

  std::int64_t tokens() const { return tokens_; }
  double seconds() const;

 private:
  void show();
  void put(const std::string& text);

  std::FILE* stream_;
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point last_;
  ProgressState state_;
  std::int64_t tokens_ = 0;
  double loss_sum_ = 0;
};

/// "0:42", "12:05" or "3:04:05".
std::string duration(double seconds);

}  // namespace translator
