#include <translator/cli/commands.h>

#include <poll.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include <rill/core/about.h>
#include <rill/core/error.h>
#include <rill/core/io/file.h>
#include <translator/data/embedded_corpus.h>
#include <translator/data/hold_out.h>
#include <translator/data/pairs.h>
#include <translator/evaluate/evaluation.h>
#include <translator/evaluate/heat_map.h>
#include <translator/text/json.h>
#include <translator/text/line_reader.h>

namespace translator {
namespace {

constexpr std::size_t embedded_pairs = 21000;  // 20,000 to train on, 1,000 held out
constexpr std::uint64_t embedded_seed = 1;

void say(const std::string& text) { fmt::print(stderr, "{}\n", text); }

std::vector<Pair> with_notes(Pairs read) {
  for (const std::string& note : read.notes) say(note);
  return std::move(read.pairs);
}

std::vector<Pair> training_pairs(const TrainCommand& c) {
  const ReadOptions options{.max_length = static_cast<std::size_t>(c.max_length)};
  if (!c.pairs.empty()) return with_notes(read_pairs(c.pairs, options));
  if (!c.source.empty()) return with_notes(read_parallel(c.source, c.target, options));
  say("no files given: training on the embedded English-French corpus");
  return embedded_corpus(embedded_pairs, embedded_seed);
}

Split training_split(const TrainCommand& c) {
  std::vector<Pair> pairs = training_pairs(c);
  if (c.valid.empty()) {
    rill::Rng rng(c.training.seed);
    return hold_out(std::move(pairs), rng);
  }
  Split split{std::move(pairs), with_notes(read_pairs(c.valid)), ""};
  const std::size_t known = count_known_sources(split.valid, split.train);
  if (known > 0)
    split.note = fmt::format("{}: {} of {} sources are among the training pairs", printable(c.valid), known,
                             split.valid.size());
  return split;
}

Languages languages_of(const std::vector<Pair>& pairs, std::int64_t min_count) {
  WordCounter source, target;
  Languages out;
  for (const Pair& pair : pairs) {
    source.add(pair.source);
    target.add(pair.target);
    out.spacing.observe(pair.target_text);
  }
  out.source = source.vocabulary(min_count);
  out.target = target.vocabulary(min_count);
  rill::check(!out.source.words().empty() && !out.target.words().empty(),
              "--min-count {}: no word of the {} occurs so often; use a smaller number", min_count,
              out.source.words().empty() ? "sources" : "targets");
  say(fmt::format("{} training pair{}; {} source words ({} kept), {} target words ({} kept)", pairs.size(),
                  pairs.size() == 1 ? "" : "s", source.types(), out.source.words().size(), target.types(),
                  out.target.words().size()));
  return out;
}

nlohmann::json training_summary(const TrainingResult& result, const Translator& model,
                                std::size_t train_pairs) {
  nlohmann::json out = {{"epochs", result.history.size()},
                        {"best_epoch", result.best_epoch},
                        {"interrupted", result.interrupted},
                        {"stopped_early", result.stopped_early},
                        {"parameters", model.network().num_parameters()},
                        {"pairs", train_pairs}};
  double seconds = 0;
  for (const EpochRecord& record : result.history) {
    seconds += record.seconds;
    if (record.epoch != result.best_epoch) continue;
    out["loss"] = number_or_null(record.valid_loss);
    out["perplexity"] = number_or_null(std::exp(record.valid_loss));
    out["bleu"] = number_or_null(record.valid_bleu);
  }
  if (!result.history.empty()) out["tokens_per_s"] = result.history.back().tokens_per_s;
  out["train_seconds"] = seconds;
  return out;
}

void check_folder(const TrainCommand& c) {
  rill::check(!c.resume || std::filesystem::is_directory(c.folder),
              "--resume: there is no folder {}; train without --resume first", printable(c.folder));
  std::error_code error;
  std::filesystem::create_directories(c.folder, error);
  rill::check(!error, "--model {}: the folder cannot be made: {}", c.folder, error.message());
}

}  // namespace

void run_train(const TrainCommand& c) {
  stop_on_signals();
  Split split = training_split(c);
  if (!split.note.empty()) say(split.note);
  check_folder(c);
  rill::Rng rng(c.training.seed);
  Translator model(c.model, languages_of(split.train, c.min_count), rng);
  if (!c.resume && std::filesystem::exists(std::filesystem::path(c.folder) / "model.safetensors")) {
    say(fmt::format("{}: the model there will be replaced after the first epoch", printable(c.folder)));
  }
  say(fmt::format("{} parameters; {}", model.network().num_parameters(), rill::about()));
  const std::size_t pairs = split.train.size();
  const TrainingResult result =
      train_translator(model, std::move(split.train), split.valid, c.training, c.folder, c.resume);
  if (result.interrupted)
    say(fmt::format("interrupted; the same command with --resume continues from {}", printable(c.folder)));
  if (result.stopped_early)
    say(fmt::format("stopped: no better loss or BLEU for {} epochs", c.training.patience));
  if (result.best_epoch > 0)
    say(fmt::format("{}: the model of epoch {}", printable(c.folder), result.best_epoch));
  if (c.json) fmt::print("{}\n", training_summary(result, model, pairs).dump());
}

namespace {

/// Whether a read of standard input would wait.
bool input_waits() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 0) == 0;
}

void write_translations(const Translator& model, std::vector<Tokens>& sentences, std::int64_t beam) {
  for (const Translation& translation : model.translate(sentences, beam)) {
    fmt::print("{}\n", model.languages().spacing.join(translation.tokens));
  }
  rill::flush_stdout();
  sentences.clear();
}

}  // namespace

void run_translate(const std::string& folder, std::int64_t beam) {
  constexpr std::size_t lines_at_once = 256, longest = 1000;
  const Translator model = Translator::load(folder);
  LineReader reader(STDIN_FILENO, "standard input");
  std::vector<Tokens> waiting;
  std::string line;
  while (reader.next(line)) {
    waiting.push_back(tokenize(line));
    if (waiting.back().size() > longest) {
      say(fmt::format("line {}: only the first {} of {} tokens are translated", reader.number(), longest,
                      waiting.back().size()));
      waiting.back().resize(longest);
    }
    if (waiting.size() == lines_at_once || input_waits()) write_translations(model, waiting, beam);
  }
  write_translations(model, waiting, beam);
}

void run_evaluate(const EvaluateCommand& c) {
  Translator model = Translator::load(c.folder);
  const std::vector<Pair> pairs =
      with_notes(c.pairs.empty() ? read_parallel(c.source, c.target) : read_pairs(c.pairs));
  const Evaluation e = evaluate(model, pairs, c.beam);
  if (c.json) {
    const nlohmann::json out = {
        {"bleu", e.bleu},           {"loss", e.loss},     {"perplexity", e.perplexity},
        {"sentences", e.sentences}, {"tokens", e.tokens}, {"tokens_per_s", e.tokens_per_s}};
    fmt::print("{}\n", out.dump());
    return;
  }
  fmt::print(
      "BLEU {:.2f}  loss {:.4f}  perplexity {:.2f}  ({} sentences, {} tokens; {:.0f} tokens/s written)\n",
      e.bleu, e.loss, e.perplexity, e.sentences, e.tokens, e.tokens_per_s);
}

void run_attention(const std::string& folder, const std::string& sentence, const std::string& out) {
  const Translator model = Translator::load(folder);
  rill::check(model.options().attention,
              "attention: {} was trained with --attention none; it has no attention weights", folder);
  const Tokens source = tokenize(sentence);
  rill::check(!source.empty(), "attention: the sentence has no words");
  const Translation translation = model.translate(std::span(&source, 1), 1, true).front();
  rill::check(!translation.tokens.empty(), "attention: the translation is empty; there is nothing to draw");
  const auto rows = static_cast<std::int64_t>(translation.tokens.size());
  const rill::Tensor weights = translation.weights.narrow(0, 0, rows).contiguous();
  HeatMap map{
      .title = sentence, .rows = translation.tokens, .columns = source, .weights = weights.span<float>()};
  map.columns.push_back(std::string(model.languages().source.text(Vocabulary::end)));
  rill::write_file_atomically(out, heat_map_svg(map));
  fmt::print("{}\n", model.languages().spacing.join(translation.tokens));
}

void run_corpus(std::int64_t count, std::uint64_t seed, const std::string& out) {
  rill::write_file_atomically(out, to_tsv(embedded_corpus(static_cast<std::size_t>(count), seed)));
}

}  // namespace translator
