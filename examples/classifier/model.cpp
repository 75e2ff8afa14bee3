#include <classifier/model.h>

namespace classifier {
namespace {

namespace nn = rill::nn;

template <class Layers, class Options>
Layers make_layers(const ModelOptions& o, rill::Rng& rng) {
  Options options;
  options.input_size = o.input_size;
  options.hidden_size = o.hidden_size;
  options.num_layers = o.num_layers;
  options.batch_first = true;
  return Layers(options, rng);
}

std::variant<nn::GRU, nn::RAU> make(const ModelOptions& o, rill::Rng& rng) {
  if (o.cell == nn::Cell::gru) return make_layers<nn::GRU, nn::GRUOptions>(o, rng);
  return make_layers<nn::RAU, nn::RAUOptions>(o, rng);
}

}  // namespace

Model::Model(ModelOptions options, rill::Rng& rng)
    : options_(options),
      layers_(make(options, rng)),
      fc_({.in_features = options.hidden_size, .out_features = options.output_size}, rng) {}

rill::Tensor Model::operator()(const rill::Tensor& x, const rill::Tensor& lengths) const {
  const auto run = [&](const auto& layers) { return layers(x, {.lengths = lengths}); };
  return fc_(std::visit(run, layers_).h_n.select(0, -1));
}

void Model::members(nn::Members& m) const {
  const char* name = std::holds_alternative<nn::GRU>(layers_) ? "gru" : "rau";
  std::visit([&](const auto& layers) { m(name, layers); }, layers_);
  m("fc", fc_);
}

}  // namespace classifier
