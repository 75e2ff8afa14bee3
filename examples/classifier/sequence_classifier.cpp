#include <classifier/sequence_classifier.h>

namespace classifier {
namespace nn = rill::nn;

SequenceClassifier::SequenceClassifier(SequenceClassifierOptions options, rill::Rng& rng)
    : options_(options),
      layers_({.cell = options.cell,
               .layers = {.input_size = options.input_size,
                          .hidden_size = options.hidden_size,
                          .num_layers = options.num_layers,
                          .batch_first = true}},
              rng),
      fc_({.in_features = options.hidden_size, .out_features = options.output_size}, rng) {}

rill::Tensor SequenceClassifier::operator()(const rill::Tensor& x, const rill::Tensor& lengths) const {
  return fc_(layers_(x, {.lengths = lengths}).last.h.select(0, -1));
}

void SequenceClassifier::members(nn::Members& m) { m(name(options_.cell), layers_)("fc", fc_); }

}  // namespace classifier
