#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include <examples/temporary_folder.h>
#include <rill/core/core.h>
#include <rill/core/io/file.h>
#include <translator/data/embedded_corpus.h>
#include <translator/evaluate/evaluation.h>
#include <translator/model/translator.h>
#include <translator/train/training.h>

namespace {

using translator::Pair;

translator::Languages languages(const std::vector<Pair>& pairs) {
  translator::WordCounter source, target;
  translator::Languages out;
  for (const Pair& pair : pairs) {
    source.add(pair.source);
    target.add(pair.target);
    out.spacing.observe(pair.target_text);
  }
  out.source = source.vocabulary();
  out.target = target.vocabulary();
  return out;
}

constexpr translator::TranslatorOptions small{.embedding = 12, .hidden = 12, .dropout = 0.2};

translator::Translator new_model(const std::vector<Pair>& pairs,
                                 const translator::TranslatorOptions& options = small) {
  rill::Rng rng(1);
  return translator::Translator(options, languages(pairs), rng);
}

struct Data {
  std::vector<Pair> train, valid;
  Data() {
    const std::vector<Pair> all = translator::embedded_corpus(260, 5);
    train.assign(all.begin(), all.begin() + 240);
    valid.assign(all.begin() + 240, all.end());
  }
};

}  // namespace

TEST_CASE("translator: a trained model translates the same after saving and loading") {
  const Data data;
  const TemporaryFolder folder;
  for (const auto cell : {rill::nn::Cell::gru, rill::nn::Cell::rau}) {
    translator::TranslatorOptions options = small;
    options.cell = cell;
    translator::Translator model = new_model(data.train, options);
    const auto result = translator::train_translator(
        model, data.train, data.valid, {.epochs = 3, .batch = 16, .lr = 5e-3}, folder.path(), false);
    REQUIRE(result.history.size() == 3);
    CHECK(result.history[2].train_loss < result.history[0].train_loss - 0.5);
    CHECK(bytes_of(folder / "log.csv").starts_with("epoch,train_loss"));
    translator::Translator loaded = translator::Translator::load(folder.path());
    CHECK(loaded.options() == options);
    CHECK(loaded.languages().target == model.languages().target);
    const auto& best = result.history[static_cast<std::size_t>(result.best_epoch - 1)];
    const translator::Evaluation e = translator::evaluate(loaded, data.valid, 1);
    CHECK(e.loss == doctest::Approx(best.valid_loss));
    CHECK(e.bleu == doctest::Approx(best.valid_bleu));
  }
}

TEST_CASE("translator: an interrupted run resumes to the same model as an uninterrupted one") {
  const Data data;
  const TemporaryFolder whole, parts;
  const translator::TrainingOptions options{.epochs = 3, .batch = 16};
  translator::Translator model = new_model(data.train);
  translator::train_translator(model, data.train, data.valid, options, whole.path(), false);

  translator::stop_requested = true;  // before the first batch
  translator::Translator first = new_model(data.train);
  CHECK(
      translator::train_translator(first, data.train, data.valid, options, parts.path(), false).interrupted);
  CHECK(std::filesystem::exists(parts.path() / "model.safetensors"));
  translator::stop_requested = false;
  translator::TrainingOptions fewer = options;
  fewer.epochs = 2;  // ended after an epoch
  translator::Translator second = new_model(data.train);
  CHECK_FALSE(
      translator::train_translator(second, data.train, data.valid, fewer, parts.path(), true).interrupted);
  translator::Translator third = new_model(data.train);
  const auto result =
      translator::train_translator(third, data.train, data.valid, options, parts.path(), true);
  CHECK(result.history.size() == 3);
  CHECK(bytes_of(whole / "model.safetensors") == bytes_of(parts / "model.safetensors"));
}

namespace {

/// A folder with the model and checkpoint of one epoch.
struct TrainedFolder {
  Data data;
  TemporaryFolder folder;
  translator::TrainingOptions options{.epochs = 1, .batch = 16};
  TrainedFolder() {
    translator::Translator model = new_model(data.train);
    translator::train_translator(model, data.train, data.valid, options, folder.path(), false);
  }
};

}  // namespace

TEST_CASE("translator: an interruption in the first epoch leaves an earlier model and checkpoint unchanged") {
  const TrainedFolder trained;
  const auto& [data, folder, options] = trained;
  const auto model = bytes_of(folder / "model.safetensors"),
             checkpoint = bytes_of(folder / "checkpoint.safetensors");
  translator::stop_requested = true;
  translator::Translator other = new_model(data.train);
  CHECK(
      translator::train_translator(other, data.train, data.valid, options, folder.path(), false).interrupted);
  translator::stop_requested = false;
  CHECK(bytes_of(folder / "model.safetensors") == model);
  CHECK(bytes_of(folder / "checkpoint.safetensors") == checkpoint);
}

TEST_CASE("translator: weights trained with other vocabularies are rejected") {
  const TrainedFolder trained;
  const TemporaryFolder& folder = trained.folder;
  std::filesystem::copy_file(folder / "source_vocabulary.json", folder / "target_vocabulary.json",
                             std::filesystem::copy_options::overwrite_existing);
  CHECK_THROWS_WITH_AS(
      translator::Translator::load(folder.path()),
      doctest::Contains("the weights were not trained with the vocabularies and configuration"), rill::Error);
}

TEST_CASE("translator: weights trained with another configuration are rejected") {
  const TrainedFolder trained;
  const std::filesystem::path file = trained.folder / "config.json";
  std::string text = rill::read_file(file, 1 << 20);
  const auto at = text.find("\"dropout\": ") + 11;
  text.replace(at, text.find_first_of(",\n}", at) - at, "0.25");
  rill::write_file_atomically(file, text);
  CHECK_THROWS_WITH_AS(translator::Translator::load(trained.folder.path()),
                       doctest::Contains("vocabularies and configuration beside them"), rill::Error);
}

TEST_CASE("translator: a loss that is not finite ends the run with an error") {
  const Data data;
  const TemporaryFolder folder;
  translator::Translator model = new_model(data.train);
  const translator::TrainingOptions options{.epochs = 2, .batch = 4, .lr = 1e30, .clip = 0};
  CHECK_THROWS_WITH_AS(
      translator::train_translator(model, data.train, data.valid, options, folder.path(), false),
      doctest::Contains("use a smaller --lr or --clip"), rill::Error);
}

TEST_CASE("translator: without held-out pairs there is no validation loss") {
  const Data data;
  const TemporaryFolder folder;
  translator::Translator model = new_model(data.train);
  const auto result =
      translator::train_translator(model, data.train, {}, {.epochs = 1, .batch = 16}, folder.path(), false);
  CHECK(std::isnan(result.history.front().valid_loss));
  const std::string log = bytes_of(folder / "log.csv");
  CHECK(log.find(",,,") != std::string::npos);
}

TEST_CASE("translator: resuming with other options, data or without a checkpoint is an error") {
  const Data data;
  const TemporaryFolder folder, empty;
  translator::Translator model = new_model(data.train);
  const translator::TrainingOptions options{.epochs = 1, .batch = 16};
  translator::train_translator(model, data.train, data.valid, options, folder.path(), false);
  const auto resume = [&](const translator::TrainingOptions& o, const std::vector<Pair>& pairs,
                          const TemporaryFolder& where) {
    translator::Translator again = new_model(data.train);
    translator::train_translator(again, pairs, data.valid, o, where.path(), true);
  };
  CHECK_THROWS_WITH_AS(resume({.epochs = 1, .batch = 8}, data.train, folder),
                       doctest::Contains("training options"), rill::Error);
  CHECK_THROWS_WITH_AS(resume(options, data.valid, folder), doctest::Contains("sentence pairs"), rill::Error);
  CHECK_THROWS_WITH_AS(resume(options, data.train, empty), doctest::Contains("no checkpoint"), rill::Error);
}

TEST_CASE("translator: sentences translate the same alone and in a batch, greedily and with a beam") {
  const Data data;
  translator::Translator model = new_model(data.train);
  model.network().eval();
  std::vector<translator::Tokens> sources;
  for (const Pair& pair : data.valid) sources.push_back(pair.source);
  sources.push_back({});
  for (std::int64_t beam : {1, 3}) {
    const auto together = model.translate(sources, beam);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      CHECK(model.translate(std::span(&sources[i], 1), beam).front().tokens == together[i].tokens);
    }
    CHECK(together.back().tokens.empty());
  }
}

TEST_CASE("translator: padding does not contribute to the loss") {
  const Data data;
  translator::Translator model = new_model(data.train);
  model.network().eval();
  const auto& words = model.languages();
  const translator::TokenLoss all =
      translator::token_loss(model, translator::encode_pairs(data.valid, words.source, words.target));
  double sum = 0;
  std::int64_t tokens = 0;
  for (const Pair& pair : data.valid) {
    const auto one = translator::token_loss(
        model, translator::encode_pairs(std::span(&pair, 1), words.source, words.target));
    sum += one.loss * static_cast<double>(one.tokens);
    tokens += static_cast<std::int64_t>(pair.target.size()) + 1;
  }
  CHECK(all.tokens == tokens);
  CHECK(all.loss == doctest::Approx(sum / static_cast<double>(tokens)).epsilon(1e-5));
}

TEST_CASE("translator: a folder without a model, or with a damaged one, is an error that names the file") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(translator::Translator::load(folder.path() / "none"),
                       doctest::Contains("no model folder"), rill::Error);
  CHECK_THROWS_WITH_AS(translator::Translator::load(folder.path()), doctest::Contains("config.json"),
                       rill::Error);
  const Data data;
  new_model(data.train).save(folder.path());
  std::filesystem::resize_file(folder.path() / "model.safetensors", 100);
  CHECK_THROWS_WITH_AS(translator::Translator::load(folder.path()), doctest::Contains("model.safetensors"),
                       rill::Error);
}
