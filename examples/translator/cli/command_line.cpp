#include <translator/cli/command_line.h>

#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <rill/core/error.h>
#include <rill/core/io/file.h>
#include <rill/core/parallel.h>
#include <translator/cli/commands.h>
#include <translator/text/tokenizer.h>

namespace translator {
namespace {

/// The selected command with its arguments; set while parsing the command line.
using Command = std::function<void()>;

const CLI::Range seeds(std::int64_t{0}, std::numeric_limits<std::int64_t>::max());

/// Rejects an empty name, for example from an unset shell variable.
const CLI::Validator named([](const std::string& name) { return name.empty() ? "the name is empty" : ""; },
                           "");

void add_threads(CLI::App& app, int& threads) {
  app.add_option("--threads", threads, "number of threads (default: all available)")
      ->check(CLI::Range(1, 1024));
}

CLI::Option* add_model(CLI::App& app, std::string& folder) {
  return app.add_option("--model", folder, "model folder")->required()->check(named);
}

void add_beam(CLI::App& app, std::int64_t& beam) {
  app.add_option("--beam", beam, "width of the beam search; 1 is greedy")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
}

template <class T>
void add_choice(CLI::App& app, const std::string& name, T& value, const std::map<std::string, T>& choices,
                const std::string& text) {
  std::vector<std::string> names;
  std::string current;
  for (const auto& [choice, meaning] : choices) {
    names.push_back(choice);
    if (meaning == value) current = choice;
  }
  app.add_option_function<std::string>(
         name, [&value, choices](const std::string& choice) { value = choices.at(choice); }, text)
      ->check(CLI::IsMember(names).description(""))
      ->default_str(current);
}

/// The files that pairs are read from.
void add_files(CLI::App& app, std::string& pairs, std::string& source, std::string& target,
               const std::string& without) {
  auto* tsv = app.add_option("--pairs", pairs, "TSV file: source TAB target" + without)->check(named);
  auto* sources =
      app.add_option("--source", source, "source file of two parallel files")->excludes(tsv)->check(named);
  auto* targets =
      app.add_option("--target", target, "target file of two parallel files")->excludes(tsv)->check(named);
  sources->needs(targets);
  targets->needs(sources);
}

void add_shape(CLI::App& app, TranslatorOptions& o) {
  using rill::nn::Cell;
  const auto size = CLI::Range(std::int64_t{1}, std::int64_t{65536});
  add_choice<Cell>(app, "--cell", o.cell, {{"gru", Cell::gru}, {"lstm", Cell::lstm}, {"rau", Cell::rau}},
                   "gru, lstm or rau");
  app.add_option("--embedding", o.embedding, "embedding size")->check(size)->capture_default_str();
  app.add_option("--hidden", o.hidden, "hidden size")->check(size)->capture_default_str();
  app.add_option("--layers", o.layers, "number of encoder layers")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  add_choice<bool>(app, "--bidirectional", o.bidirectional, {{"on", true}, {"off", false}}, "on or off");
  add_choice<bool>(app, "--attention", o.attention, {{"additive", true}, {"none", false}},
                   "additive or none");
  app.add_option("--dropout", o.dropout, "dropout probability of embeddings and output features")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
}

void add_training(CLI::App& app, TrainingOptions& o) {
  const auto number = [&](const char* name, auto& value, const char* text, auto lo, auto hi) {
    app.add_option(name, value, text)->check(CLI::Range(lo, hi))->capture_default_str();
  };
  number("--epochs", o.epochs, "maximum number of epochs", 1, 1000000);
  number("--batch", o.batch, "sentences per step", 1, 65536);
  app.add_option("--lr", o.lr, "learning rate of Adam")->check(CLI::PositiveNumber)->capture_default_str();
  number("--clip", o.clip, "maximum gradient norm; 0: no clipping", 0.0, 1e30);
  number("--label-smoothing", o.label_smoothing, "probability mass spread evenly over all words", 0.0, 1.0);
  app.add_option("--seed", o.seed, "random seed")->check(seeds)->capture_default_str();
}

void add_train(CLI::App& parent, TrainCommand& c, int& threads, Command& command) {
  CLI::App& app = *parent.add_subcommand("train", "learn to translate from sentence pairs");
  add_files(app, c.pairs, c.source, c.target, " (default: the embedded corpus)");
  app.add_option("--valid", c.valid,
                 "TSV file of validation pairs (default: some training pairs are held out)")
      ->check(named);
  add_model(app, c.folder);
  add_shape(app, c.model);
  add_training(app, c.training);
  app.add_option("--min-count", c.min_count, "minimum count of known words")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--max-length", c.max_length,
                 "maximum number of tokens per sentence; longer pairs are dropped")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  add_threads(app, threads);
  app.add_flag("--resume", c.resume, "continue from the model's checkpoint");
  app.add_flag("--json", c.json, "print one JSON object on standard output at the end");
  app.callback([&c, &command] { command = [&c] { run_train(c); }; });
}

void add_evaluate(CLI::App& parent, EvaluateCommand& c, int& threads, Command& command) {
  CLI::App& app = *parent.add_subcommand("evaluate", "score a model on sentence pairs");
  add_model(app, c.folder);
  add_files(app, c.pairs, c.source, c.target, "");
  add_beam(app, c.beam);
  add_threads(app, threads);
  app.add_flag("--json", c.json, "print only one JSON object on standard output");
  app.callback([&c, &command] {
    if (c.pairs.empty() && c.source.empty()) throw CLI::RequiredError("--pairs, or --source with --target,");
    command = [&c] { run_evaluate(c); };
  });
}

/// The arguments of all commands, with static lifetime.
struct Arguments {
  TrainCommand train;
  EvaluateCommand evaluate;
  std::string folder, sentence, out;
  std::int64_t beam = 5, count = 20000;
  std::uint64_t seed = 1;
  int threads = 0;
};

void add_commands(CLI::App& app, Arguments& a, Command& command) {
  app.require_subcommand(1);
  add_train(app, a.train, a.threads, command);
  CLI::App& translate = *app.add_subcommand("translate", "translate the lines of standard input");
  add_model(translate, a.folder);
  add_beam(translate, a.beam);
  add_threads(translate, a.threads);
  translate.callback([&] { command = [&] { run_translate(a.folder, a.beam); }; });
  add_evaluate(app, a.evaluate, a.threads, command);
  CLI::App& attention = *app.add_subcommand("attention", "draw the attention of a translation");
  add_model(attention, a.folder);
  attention.add_option("sentence", a.sentence, "a sentence to translate")->required();
  attention.add_option("--out", a.out, "SVG file to write")->required();
  attention.callback([&] { command = [&] { run_attention(a.folder, a.sentence, a.out); }; });
  CLI::App& corpus = *app.add_subcommand("corpus", "write the embedded English-French pairs");
  corpus.add_option("--count", a.count, "number of pairs")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  corpus.add_option("--seed", a.seed, "random seed")->check(seeds)->capture_default_str();
  corpus.add_option("--out", a.out, "TSV file to write")->required();
  corpus.callback([&] { command = [&] { run_corpus(a.count, a.seed, a.out); }; });
}

}  // namespace

int run_command_line(int argc, char** argv) try {
  CLI::App app("Trains and uses a translator: a recurrent encoder and a decoder with additive attention.",
               "translator");
  Arguments arguments;
  Command command;
  add_commands(app, arguments, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (arguments.threads > 0) rill::set_num_threads(arguments.threads);
  command();
  rill::flush_stdout();
  return stop_requested ? 130 : 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "translator: {}\n", printable(error.what()));
  return 1;
}

}  // namespace translator
