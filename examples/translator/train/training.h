/// Training a translator: epochs, validation, the best model, early stopping, and resuming after an
/// interruption.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <translator/data/pairs.h>
#include <translator/model/translator.h>
#include <translator/train/training_log.h>

namespace translator {

struct TrainingOptions {
  std::int64_t epochs = 30;
  std::int64_t batch = 64;
  double lr = 1e-3;  ///< of Adam; halved after an epoch without a better validation loss
  double clip = 1;   ///< norm of all gradients; a step whose norm is not finite is skipped and counted
  double label_smoothing = 0.1;
  std::int64_t patience = 6;  ///< epochs without a better loss or BLEU before training stops
  std::uint64_t seed = 1;
};

/// All options but `epochs`, which may differ when a run is resumed.
nlohmann::json to_json(const TrainingOptions& options);

/// The outcome of a training run.
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

/// Trains `model` on `train` and writes to `folder`: model.safetensors (the parameters of the best epoch by
/// BLEU on `valid`, or of the last epoch without), log.csv, and checkpoint.safetensors, from which a later
/// call continues as if it had not been interrupted.
///
/// `resume` continues from the checkpoint; throws rill::Error if there is none or if it was made with another
/// model, other data or other options (`epochs` aside).
/// Move a large `train` in: its text is released once it is encoded.
TrainingResult train_translator(Translator& model, std::vector<Pair> train, const std::vector<Pair>& valid,
                                const TrainingOptions& options, const std::filesystem::path& folder,
                                bool resume);

}  // namespace translator
