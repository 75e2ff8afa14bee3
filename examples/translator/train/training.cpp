#include <translator/train/training.h>

#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include <rill/core/io/file.h>
#include <rill/core/memory.h>
#include <rill/core/random.h>
#include <rill/optim/optim.h>
#include <translator/data/encoded_pairs.h>
#include <translator/data/fingerprint.h>
#include <translator/evaluate/evaluate.h>
#include <translator/model/json.h>
#include <translator/train/checkpoint.h>
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

/// A number that another set of pairs would hardly have.
std::uint64_t fingerprint(const EncodedPairs& train, const EncodedPairs& valid) {
  Fingerprint print;
  for (const EncodedPairs* pairs : {&train, &valid}) {
    for (const auto* side : {&pairs->sources, &pairs->targets}) {
      print.add(std::uint64_t{side->size()});
      for (const auto& sentence : *side) {
        for (std::int64_t id : sentence) print.add(static_cast<std::uint64_t>(id));
      }
    }
  }
  return print.value();
}

nlohmann::json to_json(const EpochRecord& r) {
  return {{"epoch", r.epoch},
          {"train_loss", r.train_loss},
          {"valid_loss", number_or_null(r.valid_loss)},
          {"valid_bleu", number_or_null(r.valid_bleu)},
          {"lr", r.lr},
          {"tokens_per_s", r.tokens_per_s},
          {"seconds", r.seconds},
          {"skipped_steps", r.skipped_steps}};
}

EpochRecord epoch_record(const nlohmann::json& j) {
  const auto number = [&](const char* name) { return j.at(name).is_null() ? NAN : j.at(name).get<double>(); };
  return {j.at("epoch"), j.at("train_loss"),   number("valid_loss"), number("valid_bleu"),
          j.at("lr"),    j.at("tokens_per_s"), j.at("seconds"),      j.at("skipped_steps")};
}

/// One run: what is trained, and where it stands.
class Run {
 public:
  Run(Model& model, std::span<const Pair> train, const std::vector<Pair>& valid,
      const TrainingOptions& options, const std::filesystem::path& folder)
      : model_(model),
        valid_(valid),
        options_(options),
        folder_(folder),
        pairs_(encode_pairs(train, model.languages().source, model.languages().target)),
        identity_({{"model", translator::to_json(model.options())},
                   {"training", translator::to_json(options)},
                   {"data", fingerprint(pairs_, encode_pairs(valid, model.languages().source,
                                                             model.languages().target))}}),
        optimizer_(model.network().parameters(), {.lr = options.lr}),
        schedule_(optimizer_, {.factor = 0.5, .patience = 0}) {
    optimizer_.zero_grad();  // the model may come with some
  }

  void resume();
  TrainingResult run();

 private:
  bool train_epoch();
  void finish_epoch(double train_loss, double tokens_per_s, double seconds);
  void step(const PairBatch& batch, Progress& progress);
  void write_log() const;
  void save(double loss_sum, std::int64_t tokens, double seconds) const;
  std::filesystem::path checkpoint() const { return folder_ / "checkpoint.safetensors"; }

  Model& model_;
  const std::vector<Pair>& valid_;
  TrainingOptions options_;
  std::filesystem::path folder_;
  EncodedPairs pairs_;
  nlohmann::json identity_;  // what must be the same when a run goes on
  rill::optim::Adam optimizer_;
  rill::optim::ReduceLROnPlateau schedule_;

  std::int64_t epoch_ = 1;
  std::size_t next_batch_ = 0;  // within the epoch
  double loss_sum_ = 0;         // of the epoch so far, before an interruption
  std::int64_t tokens_ = 0;
  double seconds_ = 0;
  double best_bleu_ = -1;
  double best_loss_ = INFINITY;
  bool trained_ = false;     // whether this run has made a step
  std::int64_t waited_ = 0;  // epochs without a better loss or BLEU
  TrainingResult result_;
};

std::int64_t target_tokens(const EncodedPairs& pairs) {
  std::int64_t sum = 0;
  for (const rill::nn::ExampleLengths& lengths : pairs.lengths) sum += lengths.target;
  return sum;
}

/// Throws unless a run began with the same model, options and data.
void check_identity(const nlohmann::json& then, const nlohmann::json& now) {
  for (const char* what : {"model", "training"}) {
    rill::check(then.at(what) == now.at(what),
                "--resume: the run began with {} options {}, now they are {}; give the same", what,
                then.at(what).dump(), now.at(what).dump());
  }
  rill::check(then.at("data") == now.at("data"),
              "--resume: the sentence pairs are not those the run began with; give the same files");
}

void Run::resume() {
  rill::check(std::filesystem::exists(checkpoint()),
              "{}: there is no checkpoint to go on from; train without --resume first",
              checkpoint().string());
  const Checkpoint saved = read_checkpoint(checkpoint());
  const nlohmann::json& progress = saved.progress;
  try {
    check_identity(progress.at("identity"), identity_);
    restore(saved, model_.network(), optimizer_, schedule_);
    epoch_ = progress.at("epoch");
    next_batch_ = progress.at("next_batch");
    loss_sum_ = progress.at("loss_sum");
    tokens_ = progress.at("tokens");
    seconds_ = progress.at("seconds");
    best_bleu_ = progress.at("best_bleu");
    best_loss_ = progress.at("best_loss").is_null() ? INFINITY : progress.at("best_loss").get<double>();
    waited_ = progress.at("waited");
    result_.best_epoch = progress.at("best_epoch");
    for (const auto& record : progress.at("history")) result_.history.push_back(epoch_record(record));
  } catch (const nlohmann::json::exception& error) {
    rill::fail("{}: the checkpoint is damaged: {}", checkpoint().string(), error.what());
  }
}

void Run::save(double loss_sum, std::int64_t tokens, double seconds) const {
  nlohmann::json history = nlohmann::json::array();
  for (const EpochRecord& record : result_.history) history.push_back(to_json(record));
  nlohmann::json progress = {
      {"identity", identity_},   {"epoch", epoch_},   {"next_batch", next_batch_},
      {"loss_sum", loss_sum},    {"tokens", tokens},  {"seconds", seconds},
      {"best_bleu", best_bleu_}, {"waited", waited_}, {"best_epoch", result_.best_epoch},
      {"best_loss", best_loss_}, {"history", history}};
  if (std::isinf(best_loss_)) progress["best_loss"] = nullptr;
  save_checkpoint(checkpoint(), model_.network(), optimizer_, schedule_, progress);
}

void Run::step(const PairBatch& batch, Progress& progress) {
  const rill::Tensor loss =
      model_.network().loss(batch.source, batch.source_lengths, batch.target_in, batch.target_out,
                            {.ignore_index = Vocabulary::pad, .label_smoothing = options_.label_smoothing});
  loss.backward();
  optimizer_.step_clipped(options_.clip > 0 ? options_.clip : INFINITY);
  optimizer_.zero_grad();  // before validation and the next batch need the memory
  const double value = loss.item();
  if (!std::isfinite(value)) return progress.batch(0, 0);  // nothing for the mean
  loss_sum_ += value * static_cast<double>(batch.tokens);
  tokens_ += batch.tokens;
  progress.batch(batch.tokens, value);
}

/// False when it was interrupted; the checkpoint holds what was trained then.
bool Run::train_epoch() {
  model_.network().train();
  rill::Rng order(options_.seed, static_cast<std::uint64_t>(epoch_));
  const std::vector<rill::nn::BatchIndices> batches =
      rill::nn::bucketed_batches(pairs_.lengths, {.batch_size = options_.batch}, order);
  Progress progress(fmt::format("epoch {}/{}", epoch_, options_.epochs),
                    static_cast<std::int64_t>(batches.size() - next_batch_));
  for (; next_batch_ < batches.size(); ++next_batch_) {
    if (stop_requested) {
      // Without a step there is nothing that an earlier run's checkpoint should make way for.
      if (trained_ || !std::filesystem::exists(checkpoint()))
        save(loss_sum_, tokens_, seconds_ + progress.seconds());
      return false;
    }
    trained_ = true;
    step(pair_batch(pairs_, batches[next_batch_]), progress);
  }
  const double seconds = seconds_ + progress.seconds();
  progress.clear();
  const std::int64_t all = target_tokens(pairs_);
  rill::check(2 * tokens_ >= all,
              "train: the loss of epoch {} is finite for {} of {} tokens only; use a smaller --lr or --clip",
              epoch_, tokens_, all);
  finish_epoch(loss_sum_ / static_cast<double>(std::max<std::int64_t>(tokens_, 1)),
               static_cast<double>(tokens_) / seconds, seconds);
  return true;
}

void Run::finish_epoch(double train_loss, double tokens_per_s, double seconds) {
  EpochRecord record{.epoch = epoch_,
                     .train_loss = train_loss,
                     .lr = optimizer_.lr(),
                     .tokens_per_s = tokens_per_s,
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
  next_batch_ = 0;
  loss_sum_ = seconds_ = 0;
  tokens_ = 0;
  save(0, 0, 0);
  write_log();
}

void Run::write_log() const {
  std::string csv =
      "epoch,train_loss,valid_loss,valid_perplexity,valid_bleu,lr,tokens_per_s,seconds,skipped_steps\n";
  for (const EpochRecord& r : result_.history) {
    const std::string valid = std::isnan(r.valid_loss) ? ",,"
                                                       : fmt::format("{:.6f},{:.4f},{:.3f}", r.valid_loss,
                                                                     std::exp(r.valid_loss), r.valid_bleu);
    csv += fmt::format("{},{:.6f},{},{:.6g},{:.1f},{:.2f},{}\n", r.epoch, r.train_loss, valid, r.lr,
                       r.tokens_per_s, r.seconds, r.skipped_steps);
  }
  rill::write_file_atomically(folder_ / "log.csv", csv);
}

void print_epoch(const EpochRecord& r, const TrainingOptions& options, bool validated, bool best) {
  std::string line = fmt::format("epoch {}/{}  loss {:.4f}", r.epoch, options.epochs, r.train_loss);
  if (validated) line += fmt::format("  valid loss {:.4f}  BLEU {:.2f}", r.valid_loss, r.valid_bleu);
  fmt::print(stderr, "{}  {:.0f} tokens/s  {}{}\n", line, r.tokens_per_s, duration(r.seconds),
             best ? "  *" : "");
}

TrainingResult Run::run() {
  while (epoch_ <= options_.epochs && waited_ < options_.patience) {
    if (!train_epoch()) {
      result_.interrupted = true;
      // Half an epoch makes no model to replace another with, but is better than none.
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

TrainingResult train(Model& model, std::vector<Pair> train, const std::vector<Pair>& valid,
                     const TrainingOptions& options, const std::filesystem::path& folder, bool resume) {
  Run run(model, train, valid, options, folder);
  std::vector<Pair>().swap(train);  // from here on ids are enough; = {} would keep the place
  rill::memory::trim();
  if (resume) run.resume();
  return run.run();
}

}  // namespace translator
