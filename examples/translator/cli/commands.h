/// The translator's command line.
///
///   translator train      learns to translate from sentence pairs
///   translator translate  translates lines
///   translator evaluate   scores a model on pairs
///   translator attention  draws where a translation looked
///   translator corpus     writes the embedded data
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <translator/model/model.h>
#include <translator/train/training.h>

namespace translator {

struct TrainCommand {
  std::string pairs, source, target, valid;  ///< files; none: the embedded corpus
  std::string folder;
  ModelOptions model;
  TrainingOptions training;
  std::int64_t min_count = 1;
  std::int64_t max_length = 60;
  bool resume = false;
  bool json = false;
};
void train(const TrainCommand& command);

/// Reads sentences from standard input and writes one translation a line.
void translate_lines(const std::string& folder, std::int64_t beam);

struct EvaluateCommand {
  std::string folder, pairs, source, target;
  std::int64_t beam = 1;
  bool json = false;
};
void evaluate(const EvaluateCommand& command);

/// Translates a sentence greedily and writes the attention's picture.
void draw_attention(const std::string& folder, const std::string& sentence, const std::string& out);

void write_corpus(std::int64_t count, std::uint64_t seed, const std::string& out);

/// Parses the command line and runs it; the program's exit code: 0, 1 for an error (one line on standard
/// error), 2 for a wrong command line, 130 when training was interrupted.
int run(int argc, char** argv);

}  // namespace translator
