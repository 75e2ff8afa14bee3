// A sequence classifier: images as sequences of their rows, or, without data, the adding problem.
#include <exception>
#include <filesystem>
#include <limits>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <classifier/fit.h>
#include <rill/core/about.h>
#include <rill/core/io/file.h>
#include <rill/core/parallel.h>

namespace {

struct CommandLine {
  std::string train_images, train_labels, test_images, test_labels, data, model_file;
  std::string preset;
  std::int64_t width = 0, steps = 50;
  int threads = 0;
  classifier::SequenceClassifierOptions model_options;
  classifier::FitOptions training;
};

/// The file of a data folder whose name begins with `start` and contains `kind`; throws unless there is
/// exactly one.
std::string find_file(const std::string& folder, const std::string& start, const std::string& kind) {
  rill::check(std::filesystem::is_directory(folder), "{}: no such folder", folder);
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(start) || name.find(kind) == std::string::npos) continue;
    rill::check(found.empty(), "{}: both {} and {} look like {}…{}; name the files with --train-images …",
                folder, found, entry.path().string(), start, kind);
    found = entry.path().string();
  }
  rill::check(!found.empty(), "{}: no file {}…{}", folder, start, kind);
  return found;
}

void use_folder(CommandLine& o) {
  o.train_images = find_file(o.data, "train", "images");
  o.train_labels = find_file(o.data, "train", "labels");
  o.test_images = find_file(o.data, "t10k", "images");
  o.test_labels = find_file(o.data, "t10k", "labels");
}

classifier::Score run_images(CommandLine& o, rill::Rng& rng) {
  const classifier::Dataset train = classifier::read_images(o.train_images, o.train_labels, o.width);
  const classifier::Dataset test = classifier::read_images(o.test_images, o.test_labels, o.width);
  rill::check(train.x.size(1) == test.x.size(1) && train.x.size(2) == test.x.size(2),
              "training images are {}, test images {}; they must have one size", train.x.shape(),
              test.x.shape());
  o.model_options.input_size = train.x.size(2);
  std::int64_t classes = 0;
  for (const auto& y : {train.y, test.y})
    classes = std::max(classes, rill::amax(y.to(rill::float64)).item<std::int64_t>() + 1);
  o.model_options.output_size = std::max<std::int64_t>(o.preset.empty() ? 0 : 10, classes);
  classifier::SequenceClassifier model(o.model_options, rng);
  fmt::print("{} training and {} test images of {} rows; {} parameters\n", train.size(), test.size(),
             train.x.size(1), model.num_parameters());
  const classifier::Score score = classifier::fit(model, train, test, o.training);
  if (!o.model_file.empty()) model.save(o.model_file);
  return score;
}

classifier::Score run_adding_problem(CommandLine& o, rill::Rng& rng) {
  o.model_options.input_size = 2;
  o.model_options.output_size = 1;
  classifier::SequenceClassifier model(o.model_options, rng);
  fmt::print("no data given; training on the adding problem over {} steps; {} parameters\n", o.steps,
             model.num_parameters());
  const classifier::Score score = classifier::fit_adding_problem(model, o.steps, o.training);
  if (!o.model_file.empty()) model.save(o.model_file);
  return score;
}

void add_data(CLI::App& app, CommandLine& o) {
  auto* data = app.add_option(
      "--data", o.data,
      "folder with train*images*, train*labels*, t10k*images*, t10k*labels* (IDX, .gz or not)");
  auto* images =
      app.add_option("--train-images", o.train_images, "or the four IDX files separately")->excludes(data);
  for (auto [name, value] : {std::pair{"--train-labels", &o.train_labels},
                             {"--test-images", &o.test_images},
                             {"--test-labels", &o.test_labels}}) {
    auto* file = app.add_option(name, *value)->excludes(data)->needs(images);
    images->needs(file);
  }
  app.add_option("--steps", o.steps, "sequence length of the adding problem")
      ->check(CLI::Range(2, 100000))
      ->capture_default_str()
      ->excludes(data)
      ->excludes(images);
}

void add_model(CLI::App& app, CommandLine& o) {
  auto* preset = app.add_option("--preset", o.preset,
                                "30-64-2-10: rows padded to 30 features, hidden 64, 2 layers, 10 classes")
                     ->check(CLI::IsMember({"30-64-2-10"}).description(""));
  std::vector<std::string> cells;
  for (const rill::nn::Cell cell : rill::nn::cells) cells.push_back(name(cell));
  app.add_option_function<std::string>(
         "--cell", [&o](const std::string& cell) { o.model_options.cell = *rill::nn::cell_named(cell); },
         fmt::format("{}", fmt::join(cells, " or ")))
      ->check(CLI::IsMember(cells).description(""))
      ->default_str("gru");
  app.add_option("--hidden", o.model_options.hidden_size, "hidden size")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str()
      ->excludes(preset);
  app.add_option("--layers", o.model_options.num_layers, "number of layers")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->excludes(preset);
  app.add_option("--model", o.model_file, "safetensors file to write");
}

void add_training(CLI::App& app, classifier::FitOptions& o) {
  app.add_option("--epochs", o.epochs, "number of epochs; 500 steps each for the adding problem")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--batch", o.batch, "sequences per step")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--lr", o.lr, "learning rate of Adam")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--clip", o.clip, "maximum gradient norm; 0: no clipping")
      ->check(CLI::Range(0.0, 1e30))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "random seed")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Classifies sequences with a recurrent layer and a linear layer on its last state.",
               "classifier");
  CommandLine o;
  add_data(app, o);
  add_model(app, o);
  add_training(app, o.training);
  app.add_option("--threads", o.threads, "number of threads (default: all available)")
      ->check(CLI::Range(1, 1024));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (o.threads > 0) rill::set_num_threads(o.threads);
  if (!o.preset.empty()) {
    o.width = 30;
    o.model_options.hidden_size = 64;
    o.model_options.num_layers = 2;
  }
  fmt::print("{}\n", rill::about());
  if (!o.data.empty()) use_folder(o);
  rill::Rng rng(o.training.seed);
  const bool images = !o.train_images.empty();
  const classifier::Score score = images ? run_images(o, rng) : run_adding_problem(o, rng);
  if (images) {
    fmt::print("accuracy {:.2f} %\n", 100 * score.accuracy);
  } else {
    fmt::print("mean squared error {:.5f}\n", score.loss);
  }
  rill::flush_stdout();
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "classifier: {}\n", error.what());
  return 1;
}
