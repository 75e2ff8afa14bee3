/// The translator's model: a network, the words of both languages, and the folder they live in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <rill/nn/nn.h>
#include <translator/text/spacing.h>
#include <translator/text/text.h>
#include <translator/text/vocabulary.h>

namespace translator {

/// The shape of the network.
struct ModelOptions {
  rill::nn::Cell cell = rill::nn::Cell::gru;
  std::int64_t embedding = 256;
  std::int64_t hidden = 256;
  std::int64_t layers = 1;  ///< of the encoder
  bool bidirectional = true;
  bool attention = true;
  double dropout = 0.3;  ///< of embeddings and of what the output layer reads

  friend bool operator==(const ModelOptions&, const ModelOptions&) = default;
};

nlohmann::json to_json(const ModelOptions& options);
ModelOptions model_options_from_json(const nlohmann::json& json, const std::string& where);

/// What belongs to two languages: their words, and the spacing of the one that is written.
struct Languages {
  Vocabulary source;
  Vocabulary target;
  Spacing spacing;
};

/// A translation: its tokens, and where each looked when that was asked for.
struct Translation {
  Tokens tokens;
  rill::Tensor weights;  ///< [tokens + 1, source tokens + 1] with the ends, or undefined
};

/// A translator that can be trained, saved and used.
class Model {
 public:
  /// A new model with random parameters.
  Model(const ModelOptions& options, Languages languages, rill::Rng& rng);

  /// Reads config.json, both vocabularies and model.safetensors. Throws rill::Error naming the file that is
  /// missing or wrong.
  static Model load(const std::filesystem::path& folder);
  /// Writes these files, or leaves those that are there when one cannot be written.
  void save(const std::filesystem::path& folder) const;

  /// A number that other vocabularies or another configuration would hardly have: it ties the weights to
  /// theirs.
  std::string fingerprint() const;

  /// The translations of tokenised sentences, in their order; beam 1 is greedy. An empty sentence gives an
  /// empty translation.
  std::vector<Translation> translate(std::span<const Tokens> sentences, std::int64_t beam,
                                     bool weights = false) const;

  const rill::nn::Seq2Seq& network() const noexcept { return network_; }
  rill::nn::Seq2Seq& network() noexcept { return network_; }
  const Languages& languages() const noexcept { return languages_; }
  const ModelOptions& options() const noexcept { return options_; }

 private:
  ModelOptions options_;
  Languages languages_;
  rill::nn::Seq2Seq network_;
};

}  // namespace translator
