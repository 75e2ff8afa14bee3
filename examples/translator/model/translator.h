/// A translation model: the network, the vocabularies of both languages, and their folder on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <rill/nn/nn.h>
#include <translator/text/spacing.h>
#include <translator/text/tokenizer.h>
#include <translator/text/vocabulary.h>

namespace translator {

struct TranslatorOptions {
  rill::nn::Cell cell = rill::nn::Cell::gru;
  std::int64_t embedding = 256;
  std::int64_t hidden = 256;
  std::int64_t layers = 1;  ///< of the encoder
  bool bidirectional = true;
  bool attention = true;
  double dropout = 0.3;  ///< of embeddings and of what the output layer reads

  friend bool operator==(const TranslatorOptions&, const TranslatorOptions&) = default;
};

nlohmann::json to_json(const TranslatorOptions& options);
TranslatorOptions translator_options_from_json(const nlohmann::json& json, const std::string& where);

/// The vocabularies of both languages, and the spacing of the target language.
struct Languages {
  Vocabulary source;
  Vocabulary target;
  Spacing spacing;
};

/// A translation: its tokens and, if asked for, attention weights.
struct Translation {
  Tokens tokens;
  rill::Tensor weights;  ///< [tokens + 1, source tokens + 1], ends included, or undefined
};

/// A translation model that can be trained, saved and used.
class Translator {
 public:
  /// A model with random parameters.
  Translator(const TranslatorOptions& options, Languages languages, rill::Rng& rng);

  /// Reads config.json, both vocabularies and model.safetensors. Throws rill::Error naming the file that is
  /// missing or wrong.
  static Translator load(const std::filesystem::path& folder);
  /// Writes these files; keeps the existing ones if one cannot be written.
  void save(const std::filesystem::path& folder) const;

  /// A hash of vocabularies and configuration, stored with the weights so that others are refused.
  std::string fingerprint() const;

  /// The translations of tokenised sentences, in order; beam 1 is greedy. An empty sentence has an empty
  /// translation.
  std::vector<Translation> translate(std::span<const Tokens> sentences, std::int64_t beam,
                                     bool weights = false) const;

  const rill::nn::Seq2Seq& network() const noexcept { return network_; }
  rill::nn::Seq2Seq& network() noexcept { return network_; }
  const Languages& languages() const noexcept { return languages_; }
  const TranslatorOptions& options() const noexcept { return options_; }

 private:
  TranslatorOptions options_;
  Languages languages_;
  rill::nn::Seq2Seq network_;
};

}  // namespace translator
