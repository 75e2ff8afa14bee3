#include <map>

#include <bench/training.h>
#include <custom_cell/adder.h>

namespace bench {

void custom_cell_training(const std::string& size, const WorkloadOptions& options, const Emit& emit) {
  static const std::map<std::string, std::int64_t> hidden = {{"small", 64}, {"large", 256}};
  const std::int64_t h = options.hidden > 0 ? options.hidden : hidden.at(size);
  const std::int64_t steps = options.steps > 0 ? options.steps : 50;
  const std::int64_t batch = options.batch > 0 ? options.batch : 32;
  rill::Rng rng(1);
  const ::custom_cell::Adder model(h, rng);
  const rill::Tensor x = rill::rand({steps, batch, 2}, rng), y = rill::rand({batch}, rng);
  // One product after the other over [x; h], as the cell is written; x needs no gradient.
  Work work{.batch = batch, .hidden = h, .gate_steps = 2.0 / 3 * static_cast<double>(steps)};
  work.add_linear(steps, steps * batch, 2 + h, 2 * h);
  const auto loss = [&] { return rill::mse_loss(model(x), y); };
  measure_training({model, loss, batch * steps, work}, options, emit);
}

}  // namespace bench
