/// The commands of the command line, called with their parsed arguments.
#pragma once

#include <cstdint>
#include <string>

#include <translator/model/translator.h>
#include <translator/train/training.h>

namespace translator {

struct TrainCommand {
  std::string pairs, source, target, valid;  ///< files; none: the embedded corpus
  std::string folder;
  TranslatorOptions model;
  TrainingOptions training;
  std::int64_t min_count = 1;
  std::int64_t max_length = 60;
  bool resume = false;
  bool json = false;
};
void run_train(const TrainCommand& command);

/// Reads sentences from standard input and writes one translation per line.
void run_translate(const std::string& folder, std::int64_t beam);

struct EvaluateCommand {
  std::string folder, pairs, source, target;
  std::int64_t beam = 1;
  bool json = false;
};
void run_evaluate(const EvaluateCommand& command);

/// Translates a sentence greedily and draws its attention weights to the file `out`.
void run_attention(const std::string& folder, const std::string& sentence, const std::string& out);

void run_corpus(std::int64_t count, std::uint64_t seed, const std::string& out);

}  // namespace translator
