/// The networks that the training workloads step, by their sizes.
#pragma once

#include <cstdint>
#include <string>

#include <bench/workloads.h>

namespace bench {

struct Seq2SeqSizes {
  std::int64_t batch, hidden, source_steps, target_steps, source_words, target_words, layers;
  bool bidirectional;
};

/// A sequence classifier: recurrent layers, and scores of ten classes from the last step.
struct ClassifierSizes {
  std::int64_t batch, input, hidden, layers, steps;
  bool ragged = false;  ///< lengths uniform in 1 … steps instead of full rows
};

/// Those of small, medium or large, with the options' batch.
Seq2SeqSizes seq2seq_sizes(const std::string& size, const Options& options);
ClassifierSizes classifier_sizes(const std::string& size, const Options& options);

/// Measures a training step; the classifier's layers are GRUs.
void train(const Seq2SeqSizes& sizes, const Options& options, const Emit& emit);
void train(const ClassifierSizes& sizes, const Options& options, const Emit& emit);

}  // namespace bench
