/// Training and testing the sequence classifier.
#pragma once

#include <cstdint>

#include <classifier/datasets.h>
#include <classifier/sequence_classifier.h>

namespace classifier {

struct FitOptions {
  std::int64_t epochs = 15;
  std::int64_t batch = 32;
  double lr = 2e-3;  ///< of Adam; decays to 0 by half a cosine
  double clip = 1;   ///< maximum gradient norm; 0: no clipping
  std::uint64_t seed = 1;
};

/// Cross entropy for classes, mean squared error for numbers.
rill::Tensor loss(const SequenceClassifier& model, const Dataset& batch);

struct Score {
  double loss = 0;      ///< mean over the sequences
  double accuracy = 0;  ///< fraction of correct classes; 0 for numbers
};
Score score(SequenceClassifier& model, const Dataset& data);

/// Trains on `train`; prints loss and the score on `test` after each epoch. Returns the last score.
Score fit(SequenceClassifier& model, const Dataset& train, const Dataset& test, const FitOptions& options);

/// Trains on new sequences of the adding problem, `steps` long, for `options.epochs` times 500 training
/// steps.
Score fit_adding_problem(SequenceClassifier& model, std::int64_t steps, const FitOptions& options);

}  // namespace classifier
