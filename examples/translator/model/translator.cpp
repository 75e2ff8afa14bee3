#include <translator/model/translator.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <rill/core/error.h>
#include <rill/core/io/file.h>
#include <rill/core/io/safetensors.h>
#include <translator/data/fingerprint.h>
#include <translator/text/json.h>

namespace translator {
namespace {

namespace nn = rill::nn;
using rill::Tensor;

constexpr std::int64_t format = 2;  // version of the model folder
constexpr std::int64_t largest_size = 65536;

nn::Seq2SeqOptions network_options(const TranslatorOptions& o, const Languages& languages) {
  return {.source_vocabulary = languages.source.size(),
          .target_vocabulary = languages.target.size(),
          .embedding_dim = o.embedding,
          .hidden_size = o.hidden,
          .num_layers = o.layers,
          .bidirectional = o.bidirectional,
          .directions = nn::Directions::concat,
          .bridge = nn::Bridge::project,
          .cell = o.cell,
          .dropout = o.dropout,
          .layer_dropout = o.dropout,
          .attention = o.attention,
          .features_dropout = o.dropout,
          .relu_input = false,
          .output_embedding = true,
          .padding_idx = Vocabulary::pad};
}

bool is_recurrent(const std::string& name) {
  for (const char* part : {"weight_hh_l", "weight_hr", "weight_hz", "weight_ha", "weight_aa", ".weight_hh"}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

/// Initial values that train well: small embeddings, orthogonal recurrent matrices, zero biases, the rest as
/// Glorot and Bengio 2010.
void initialise(nn::Seq2Seq& network, rill::Rng& rng) {
  const rill::NoGrad no_grad;
  for (auto& [name, parameter] : network.named_parameters()) {
    Tensor p = parameter;
    if (name.ends_with("embedding.weight")) {
      nn::init::normal_(p, 0, 0.1, rng);
      p.select(0, Vocabulary::pad).fill_(0);
    } else if (p.dim() == 2 && is_recurrent(name)) {
      for (Tensor gate : rill::split(p, p.size(1), 0)) nn::init::orthogonal_(gate, rng);
    } else if (p.dim() == 2) {
      nn::init::xavier_uniform_(p, rng);
    } else if (name.find("bias") != std::string::npos) {
      nn::init::zeros_(p);
    }
  }
}

}  // namespace

nlohmann::json to_json(const TranslatorOptions& o) {
  return {{"cell", name(o.cell)},
          {"embedding", o.embedding},
          {"hidden", o.hidden},
          {"layers", o.layers},
          {"bidirectional", o.bidirectional},
          {"attention", o.attention ? "additive" : "none"},
          {"dropout", o.dropout}};
}

TranslatorOptions translator_options_from_json(const nlohmann::json& json, const std::string& where) {
  Fields fields(json, where);
  TranslatorOptions o;
  const std::string cell = fields.string("cell");
  const std::optional<nn::Cell> named = nn::cell_named(cell);
  rill::check(named.has_value(), "{}: 'cell' is '{}'; it must be gru, lstm or rau", where, cell);
  o.cell = *named;
  o.embedding = fields.integer("embedding", 1, largest_size);
  o.hidden = fields.integer("hidden", 1, largest_size);
  o.layers = fields.integer("layers", 1, 64);
  o.bidirectional = fields.boolean("bidirectional");
  const std::string attention = fields.string("attention");
  rill::check(attention == "additive" || attention == "none",
              "{}: 'attention' is '{}'; it must be additive or none", where, attention);
  o.attention = attention == "additive";
  o.dropout = fields.number("dropout", 0, 1);
  fields.finish();
  return o;
}

constexpr const char* fingerprint_key = "made_for";  // of the weights' metadata

Translator::Translator(const TranslatorOptions& options, Languages languages, rill::Rng& rng)
    : options_(options),
      languages_(std::move(languages)),
      network_(network_options(options, languages_), rng) {
  initialise(network_, rng);
}

Translator Translator::load(const std::filesystem::path& folder) {
  rill::check(std::filesystem::is_directory(folder),
              "{}: no model folder; `translator train --model {}` makes one", printable(folder.string()),
              printable(folder.string()));
  const auto path = [&](const char* file) { return (folder / file).string(); };
  const nlohmann::json config = read_json(path("config.json"));
  Fields fields(config, path("config.json"));
  const std::int64_t version = fields.integer("format", 1, 1000000);
  rill::check(version == format, "{}: the model has format {}, this program reads {}", path("config.json"),
              version, format);
  const TranslatorOptions options = translator_options_from_json(fields.value("model"), path("config.json"));
  const Spacing spacing = Spacing::from_json(fields.value("spacing"), path("config.json"));
  fields.finish();
  const auto words = [&](const char* file) {
    return Vocabulary::from_json(read_json(path(file)), path(file));
  };
  rill::Rng rng(0);  // every parameter is loaded
  Translator model(options, {words("source_vocabulary.json"), words("target_vocabulary.json"), spacing}, rng);
  const rill::SafetensorsFile weights = rill::load_safetensors(folder / "model.safetensors");
  const auto made_for = weights.metadata.find(fingerprint_key);
  rill::check(made_for != weights.metadata.end() && made_for->second == model.fingerprint(),
              "{}: the weights were not trained with the vocabularies and configuration beside them; train "
              "again, or bring back the files that belong together",
              printable(folder.string()));
  try {
    model.network_.load_state_dict(weights.tensors);
  } catch (const rill::Error& error) {
    rill::fail("{}: {}", printable(path("model.safetensors")), error.what());
  }
  model.network_.eval();
  return model;
}

std::string Translator::fingerprint() const {
  Fingerprint print;
  print.add(to_json(options_).dump());
  print.add(languages_.spacing.to_json().dump());
  print.add(languages_.source.to_json().dump());
  print.add(languages_.target.to_json().dump());
  return fmt::format("{:016x}", print.value());
}

void Translator::save(const std::filesystem::path& folder) const {
  // All reach the disk before any is renamed into place: a full disk leaves the old model intact.
  const auto text = [](const nlohmann::json& value) { return value.dump(2) + '\n'; };
  rill::AtomicFile source(folder / "source_vocabulary.json"), target(folder / "target_vocabulary.json"),
      config(folder / "config.json"), model(folder / "model.safetensors");
  source.write(text(languages_.source.to_json()));
  target.write(text(languages_.target.to_json()));
  config.write(
      text({{"format", format}, {"model", to_json(options_)}, {"spacing", languages_.spacing.to_json()}}));
  rill::write_safetensors(model, network_.state_dict(), {{fingerprint_key, fingerprint()}});
  const std::initializer_list<rill::AtomicFile*> files = {&source, &target, &config, &model};
  for (rill::AtomicFile* file : files) file->sync();
  for (rill::AtomicFile* file : files) file->commit();
}

std::vector<Translation> Translator::translate(std::span<const Tokens> sentences, std::int64_t beam,
                                               bool weights) const {
  constexpr std::int64_t rows_at_once = 64;
  nn::TokenSequences ids;
  std::vector<nn::ExampleLengths> lengths;
  for (const Tokens& sentence : sentences) {
    ids.push_back(languages_.source.encode(sentence));
    lengths.push_back({.source = std::ssize(ids.back())});
  }
  const nn::BeamSearchOptions search{.beam = beam,
                                     .start = Vocabulary::start,
                                     .end = Vocabulary::end,
                                     .banned = {Vocabulary::pad, Vocabulary::start, Vocabulary::unknown},
                                     .weights = weights};
  std::vector<Translation> out(sentences.size());
  const std::int64_t batch_size = std::max<std::int64_t>(1, rows_at_once / beam);
  for (const nn::BatchIndices& batch : nn::sorted_batches(lengths, {.batch_size = batch_size})) {
    const auto [source, source_lengths] = nn::pad_sequence(ids, batch, {.padding_value = Vocabulary::pad});
    const auto found = network_.search(source, source_lengths, search);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto sentence = static_cast<std::size_t>(batch[i]);
      if (sentences[sentence].empty()) continue;
      const nn::Hypothesis& best = found[i].front();
      out[sentence] = {languages_.target.decode(best.tokens), best.weights};
    }
  }
  return out;
}

}  // namespace translator
