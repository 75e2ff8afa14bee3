#include <translator/train/training.h>

#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <rill/core/io/checkpoint.h>
#include <rill/core/io/file.h>
#include <rill/core/memory.h>
#include <rill/core/random.h>
#include <rill/optim/optim.h>
#include <translator/data/encoded_pairs.h>
#include <translator/data/fingerprint.h>
#include <translator/evaluate/evaluation.h>
#include <translator/text/json.h>
#include <translator/train/progress.h>

namespace translator {

std::atomic<bool> stop_requested{false};

void stop_on_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int signal) {
    if (stop_requested.exchange(true)) _exit(128 + signal);
  };
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

nlohmann::json to_json(const TrainingOptions& o) {
  return {{"batch", o.batch},       {"lr", o.lr},    {"clip", o.clip}, {"label_smoothing", o.label_smoothing},
          {"patience", o.patience}, {"seed", o.seed}};
}

namespace {

std::uint64_t data_fingerprint(const EncodedPairs& train, const EncodedPairs& valid) {
  Fingerprint print;
  for (const EncodedPairs* pairs : {&train, &valid}) {
    for (const auto* sentences : {&pairs->sources, &pairs->targets}) {
      print.add(std::uint64_t{sentences->size()});
      for (const auto& sentence : *sentences) {
        for (std::int64_t id : sentence) print.add(static_cast<std::uint64_t>(id));
      }
    }
  }
  return print.value();
}

std::int64_t target_tokens(const EncodedPairs& pairs) {
  std::int64_t sum = 0;
  for (const rill::nn::ExampleLengths& lengths : pairs.lengths) sum += lengths.target;
  return sum;
}

/// Throws unless a run began with the same model, options and data.
void check_identity(const nlohmann::json& then, const nlohmann::json& now) {
  for (const char* part : {"model", "training"}) {
    rill::check(then.at(part) == now.at(part),
                "--resume: the run began with {} options {}, now they are {}; give the same", part,
                then.at(part).dump(), now.at(part).dump());
  }
  rill::check(then.at("data") == now.at("data"),
              "--resume: the sentence pairs are not those the run began with; give the same files");
}

/// The model being trained, its data, and the state of the run.
class TrainingRun {
 public:
  TrainingRun(Translator& model, std::span<const Pair> train, const std::vector<Pair>& valid,
              const TrainingOptions& options, const std::filesystem::path& folder);

  void resume();
  TrainingResult run();

 private:
  bool train_epoch();
  void step(const PairBatch& batch, Progress& progress);
  void finish_epoch(double seconds);
  void save() const;
  std::filesystem::path checkpoint_file() const { return folder_ / "checkpoint.safetensors"; }

  Translator& model_;
  const std::vector<Pair>& valid_;
  const TrainingOptions options_;
  const std::filesystem::path folder_;
  const EncodedPairs pairs_;
  const nlohmann::json identity_;  // must be the same when the run is resumed
  rill::optim::Adam optimizer_;
  rill::optim::ReduceLROnPlateau schedule_;

  std::int64_t epoch_ = 1;
  std::int64_t next_batch_ = 0;  // within the epoch
  double loss_sum_ = 0;          // of the epoch so far
  std::int64_t tokens_ = 0;
  double seconds_ = 0;  // of the epoch, before an interruption
  double best_bleu_ = -1;
  double best_loss_ = INFINITY;
  std::int64_t waited_ = 0;  // epochs without a better loss or BLEU
  bool trained_ = false;     // whether this run has made a step
  TrainingResult result_;
  rill::Checkpoint checkpoint_;  // of the above
};

TrainingRun::TrainingRun(Translator& model, std::span<const Pair> train, const std::vector<Pair>& valid,
                         const TrainingOptions& options, const std::filesystem::path& folder)
    : model_(model),
      valid_(valid),
      options_(options),
      folder_(folder),
      pairs_(encode_pairs(train, model.languages().source, model.languages().target)),
      identity_({{"model", translator::to_json(model.options())},
                 {"training", translator::to_json(options)},
                 {"data", data_fingerprint(pairs_, encode_pairs(valid, model.languages().source,
                                                                model.languages().target))}}),
      optimizer_(model.network().parameters(), {.lr = options.lr}),
      schedule_(optimizer_, {.factor = 0.5, .patience = 0}) {
  optimizer_.zero_grad();  // the model may have gradients
  checkpoint_.add("model", model.network()).add("optimizer", optimizer_).add("schedule", schedule_);
  checkpoint_.add("epoch", epoch_).add("next_batch", next_batch_);
  checkpoint_.add("loss_sum", loss_sum_).add("tokens", tokens_).add("seconds", seconds_);
  checkpoint_.add("best_bleu", best_bleu_).add("best_loss", best_loss_).add("waited", waited_);
  checkpoint_.add("best_epoch", result_.best_epoch);
}

void TrainingRun::resume() {
  const std::string name = checkpoint_file().string();
  rill::check(std::filesystem::exists(checkpoint_file()),
              "{}: there is no checkpoint to resume from; train without --resume first", name);
  const rill::SafetensorsFile file = rill::load_safetensors(checkpoint_file());
  try {
    check_identity(nlohmann::json::parse(file.metadata.at("identity")), identity_);
    std::vector<EpochRecord> history;
    for (const auto& record : nlohmann::json::parse(file.metadata.at("history"))) {
      history.push_back(epoch_record_from_json(record));
    }
    checkpoint_.load_state(file.tensors);
    result_.history = std::move(history);
  } catch (const rill::Error& error) {
    rill::fail("{}: {}", name, error.what());
  } catch (const std::exception& error) {  // of JSON or the metadata
    rill::fail("{}: this is no checkpoint of a training run, or it is damaged: {}", name, error.what());
  }
}

void TrainingRun::save() const {
  nlohmann::json history = nlohmann::json::array();
  for (const EpochRecord& record : result_.history) history.push_back(to_json(record));
  checkpoint_.save(checkpoint_file(), {{"identity", identity_.dump()}, {"history", history.dump()}});
}

void TrainingRun::step(const PairBatch& batch, Progress& progress) {
  const rill::Tensor loss =
      model_.network().loss(batch.source, batch.source_lengths, batch.target_in, batch.target_out,
                            {.ignore_index = Vocabulary::pad, .label_smoothing = options_.label_smoothing});
  loss.backward();
  optimizer_.step_clipped(options_.clip > 0 ? options_.clip : INFINITY);
  optimizer_.zero_grad();  // before validation and the next batch need the memory
  const double value = loss.item();
  if (!std::isfinite(value)) return progress.batch(0, 0);  // left out of the mean
  loss_sum_ += value * static_cast<double>(batch.tokens);
  tokens_ += batch.tokens;
  progress.batch(batch.tokens, value);
}

/// False if it was interrupted; the checkpoint then holds the epoch so far.
bool TrainingRun::train_epoch() {
  model_.network().train();
  rill::Rng order(options_.seed, static_cast<std::uint64_t>(epoch_));
  const std::vector<rill::nn::BatchIndices> batches =
      rill::nn::bucketed_batches(pairs_.lengths, {.batch_size = options_.batch}, order);
  Progress progress(fmt::format("epoch {}/{}", epoch_, options_.epochs), std::ssize(batches) - next_batch_);
  for (; next_batch_ < std::ssize(batches); ++next_batch_) {
    if (stop_requested) {
      seconds_ += progress.seconds();
      // Without a step there is nothing worth replacing an earlier checkpoint.
      if (trained_ || !std::filesystem::exists(checkpoint_file())) save();
      return false;
    }
    trained_ = true;
    step(pair_batch(pairs_, batches[static_cast<std::size_t>(next_batch_)]), progress);
  }
  const double seconds = seconds_ + progress.seconds();
  progress.clear();
  const std::int64_t all = target_tokens(pairs_);
  rill::check(2 * tokens_ >= all,
              "train: the loss of epoch {} is finite for {} of {} tokens only; use a smaller --lr or --clip",
              epoch_, tokens_, all);
  finish_epoch(seconds);
  return true;
}

void TrainingRun::finish_epoch(double seconds) {
  EpochRecord record{.epoch = epoch_,
                     .train_loss = loss_sum_ / static_cast<double>(std::max<std::int64_t>(tokens_, 1)),
                     .lr = optimizer_.lr(),
                     .tokens_per_s = static_cast<double>(tokens_) / seconds,
                     .seconds = seconds,
                     .skipped_steps = optimizer_.skipped_steps()};
  bool better = valid_.empty(), best = valid_.empty();
  if (!valid_.empty()) {
    const Evaluation e = evaluate(model_, valid_, 1);
    record.valid_loss = e.loss;
    record.valid_bleu = e.bleu;
    better = e.loss < best_loss_ || e.bleu > best_bleu_;
    best = e.bleu > best_bleu_ || (e.bleu == best_bleu_ && e.loss < best_loss_);
    best_loss_ = std::min(best_loss_, e.loss);
    best_bleu_ = std::max(best_bleu_, e.bleu);
    schedule_.step(e.loss);
  }
  if (best) {
    model_.save(folder_);
    result_.best_epoch = epoch_;
  }
  waited_ = better ? 0 : waited_ + 1;
  result_.history.push_back(record);
  ++epoch_;
  next_batch_ = tokens_ = 0;
  loss_sum_ = seconds_ = 0;
  save();
  rill::write_file_atomically(folder_ / "log.csv", to_csv(result_.history));
}

void print_epoch(const EpochRecord& r, const TrainingOptions& options, bool validated, bool best) {
  std::string line = fmt::format("epoch {}/{}  loss {:.4f}", r.epoch, options.epochs, r.train_loss);
  if (validated) line += fmt::format("  valid loss {:.4f}  BLEU {:.2f}", r.valid_loss, r.valid_bleu);
  fmt::print(stderr, "{}  {:.0f} tokens/s  {}{}\n", line, r.tokens_per_s, duration(r.seconds),
             best ? "  *" : "");
}

TrainingResult TrainingRun::run() {
  while (epoch_ <= options_.epochs && waited_ < options_.patience) {
    if (!train_epoch()) {
      result_.interrupted = true;
      // The model of half an epoch is not worth replacing another, but better than none.
      if (!std::filesystem::exists(folder_ / "model.safetensors")) model_.save(folder_);
      return result_;
    }
    const EpochRecord& last = result_.history.back();
    print_epoch(last, options_, !valid_.empty(), result_.best_epoch == last.epoch);
  }
  result_.stopped_early = waited_ >= options_.patience;
  return result_;
}

}  // namespace

TrainingResult train_translator(Translator& model, std::vector<Pair> train, const std::vector<Pair>& valid,
                                const TrainingOptions& options, const std::filesystem::path& folder,
                                bool resume) {
  TrainingRun run(model, train, valid, options, folder);
  std::vector<Pair>().swap(train);  // only ids are needed from here on; = {} would keep the capacity
  rill::memory::trim();
  if (resume) run.resume();
  return run.run();
}

}  // namespace translator
