/// Training and testing the classifier.
#pragma once

#include <cstdint>

#include <classifier/data.h>
#include <classifier/model.h>

namespace classifier {

struct TrainingOptions {
  std::int64_t epochs = 15;
  std::int64_t batch = 32;
  double lr = 2e-3;  ///< of Adam; falls to 0 along half a cosine
  double clip = 1;
  std::uint64_t seed = 1;
};

/// Cross entropy for classes, mean squared error for numbers.
rill::Tensor loss(const Model& model, const Data& batch);

struct Score {
  double loss = 0;      ///< mean over the sequences
  double accuracy = 0;  ///< share of right classes; 0 for numbers
};
Score score(Model& model, const Data& data);

/// Trains on `train`, printing loss and the score on `test` after each epoch. Returns the last score.
Score train(Model& model, const Data& train, const Data& test, const TrainingOptions& options);

/// Trains on fresh sequences of the adding problem, `steps` long, for `options.epochs` times 500 steps.
Score train_adding(Model& model, std::int64_t steps, const TrainingOptions& options);

}  // namespace classifier
