#include <rill/nn/recurrent/recurrent_layers.h>

namespace rill::nn::detail {

void check_options(const char* module, const RecurrentOptions& o) {
  check(o.input_size >= 1 && o.hidden_size >= 1 && o.num_layers >= 1,
        "{}: input_size {}, hidden_size {} and num_layers {} must be at least 1", module, o.input_size,
        o.hidden_size, o.num_layers);
}

void check_options(const char* module, const CellOptions& o) {
  check(o.input_size >= 1 && o.hidden_size >= 1, "{}: input_size {} and hidden_size {} must be at least 1",
        module, o.input_size, o.hidden_size);
}

void check_layer_inputs(const char* op, const RecurrentOptions& o, const Tensor& x, const Tensor& h0) {
  check(x.dim() == 3 && x.size(2) == o.input_size, "{}: the input is {}; this layer needs [{}, {}]", op,
        x.shape(), o.batch_first ? "B, T" : "T, B", o.input_size);
  if (!h0.defined()) return;
  const Shape wanted{o.num_layers * o.directions(), x.size(o.batch_first ? 0 : 1), o.hidden_size};
  check(h0.shape() == wanted, "{}: h0 is {}; an input of {} needs {}", op, h0.shape(), x.shape(), wanted);
}

void check_cell_inputs(const char* op, const CellOptions& o, const Tensor& x, const Tensor& h) {
  check(x.dim() == 2 && x.size(1) == o.input_size, "{}: the input is {}; a cell needs [B, {}]", op, x.shape(),
        o.input_size);
  if (!h.defined()) return;
  const Shape wanted{x.size(0), o.hidden_size};
  check(h.shape() == wanted, "{}: the state is {}; an input of {} needs {}", op, h.shape(), x.shape(),
        wanted);
}

}  // namespace rill::nn::detail
