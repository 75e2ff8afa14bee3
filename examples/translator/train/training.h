/// Training a translator: epochs, validation, the best model, early stop, and going on after an interruption.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <translator/data/pairs.h>
#include <translator/model/model.h>

namespace translator {

/// How to train.
struct TrainingOptions {
  std::int64_t epochs = 30;
  std::int64_t batch = 64;
  double lr = 1e-3;  ///< of Adam; halved after an epoch without a better validation loss
  double clip = 1;   ///< norm of all gradients; a step whose norm is not finite is skipped and counted
  double label_smoothing = 0.1;
  std::int64_t patience = 6;  ///< stop after so many epochs without a better loss or BLEU
  std::uint64_t seed = 1;
};

nlohmann::json to_json(const TrainingOptions& options);

/// One epoch in the log.
struct EpochRecord {
  std::int64_t epoch = 0;
  double train_loss = 0;  ///< label smoothing included, so higher than the loss itself
  double valid_loss = std::numeric_limits<double>::quiet_NaN();  ///< NaN without validation pairs
  double valid_bleu = std::numeric_limits<double>::quiet_NaN();
  double lr = 0;
  double tokens_per_s = 0;
  double seconds = 0;
  std::int64_t skipped_steps = 0;  ///< in all epochs so far
};

/// How a training run ended.
struct TrainingResult {
  std::vector<EpochRecord> history;
  std::int64_t best_epoch = 0;  ///< whose parameters model.safetensors holds
  bool interrupted = false;
  bool stopped_early = false;
};

/// Set to stop at the next batch, with a checkpoint.
extern std::atomic<bool> stop_requested;
/// Makes SIGINT, SIGTERM and SIGHUP set stop_requested; a second one ends the program at once.
void stop_on_signals();

/// Trains `model` on `train` and writes into `folder`: model.safetensors (the best epoch's parameters by BLEU
/// on `valid`, or the last ones without), log.csv, and checkpoint.safetensors, with which a later call goes
/// on as if it had not been interrupted.
///
/// `resume` takes the checkpoint's place, throwing rill::Error when there is none, or when model, data or
/// options (other than `epochs`) are not those it was made with.
/// Move a large `train` in: its text goes once it is encoded.
TrainingResult train(Model& model, std::vector<Pair> train, const std::vector<Pair>& valid,
                     const TrainingOptions& options, const std::filesystem::path& folder, bool resume);

}  // namespace translator
