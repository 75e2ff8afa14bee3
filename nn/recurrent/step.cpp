#include <rill/nn/recurrent/step.h>

#include <rill/core/ops.h>
#include <rill/core/ops/matmul_into.h>

namespace rill::nn::detail {

// --- steps

template <class T>
Step<T>::Step(const Unit& unit, Pass pass, const Tensor& hh, const Tensor& inner, std::int64_t batch)
    : unit_(unit), hidden_(hh.size(0)), width_(hh.size(1)), product_(packed_for<T>(pass, hh, batch)) {
  if (unit.has_inner()) inner_ = packed_for<T>(pass, inner, batch);
}

template <class T>
void Step<T>::forward(const kernels::StepRows<T>& rows) const {
  const UnitKernels<T>& kernels = unit_.kernels<T>();
  const std::int64_t m = rows.count, h = hidden_;
  product_->multiply({rows.h.data, m, h, rows.h.stride}, T(0), {rows.products, m, width_});
  kernels.forward(rows);
  if (!inner_) return;
  const MatrixView<T> gates{rows.gates, m, width_};
  inner_->multiply(gates.block(0, unit_.candidate * h, m, h), T(1),
                   gates.block(0, unit_.inner_gate * h, m, h));
  kernels.forward_inner(rows);
}

template <class T>
void Step<T>::backward(const kernels::StepGradients<T>& rows, bool wants_previous) const {
  const UnitKernels<T>& kernels = unit_.kernels<T>();
  const std::int64_t m = rows.count, h = hidden_;
  const MatrixView<T> gates{rows.gates, m, width_};
  if (inner_) {
    kernels.backward_inner(rows);
    inner_->multiply(gates.block(0, unit_.inner_gate * h, m, h), T(1), {rows.candidate, m, h});
  }
  kernels.backward(rows);
  if (wants_previous) product_->multiply(gates, T(1), {rows.dh, m, h});
}

template class Step<float>;
template class Step<double>;

// --- weights

Tensor added_biases(const Unit& unit, const RecurrentWeights& w, std::int64_t hidden, DType dtype) {
  const std::int64_t width = unit.gates * hidden;
  Tensor added = zeros({width + hidden}, dtype);
  if (w.bias_ih.defined()) added.narrow(0, 0, width).copy_(w.bias_ih.detach());
  if (!w.bias_hh.defined()) return added;
  for (std::int64_t gate = 0; gate < unit.gates; ++gate) {
    const std::int64_t block = gate == unit.candidate ? unit.gates : gate;
    added.narrow(0, block * hidden, hidden).add_(w.bias_hh.detach().narrow(0, gate * hidden, hidden));
  }
  return added;
}

std::optional<Saved> save_if_defined(const Tensor& t, const char* op) {
  return t.defined() ? std::optional(Saved(t, op)) : std::nullopt;
}

Tensor restored(const std::optional<Saved>& saved) { return saved ? (*saved)() : Tensor(); }

void check_fits(const char* op, const char* what, const Tensor& t, const Shape& shape, DType dtype) {
  if (!t.defined()) return;
  check(t.shape() == shape, "{}: the {} is {}; it needs {}", op, what, t.shape(), shape);
  check(t.dtype() == dtype, "{}: dtypes {} (input) and {} ({}) differ; use .to({}) on the input", op,
        name(dtype), name(t.dtype()), what, name(t.dtype()));
}

std::int64_t check_weights(const Unit& unit, const RecurrentWeights& w, std::int64_t input, DType dtype) {
  const char* op = unit.name;
  check(w.ih.defined() && w.hh.defined() && w.ih.dim() == 2 && w.hh.dim() == 2,
        "{}: the weights must be matrices", op);
  const std::int64_t hidden = w.hh.size(0);
  check(hidden >= 1 && hidden <= largest_size, "{}: weights for a hidden size of {}; it must be in 1..{}", op,
        hidden, largest_size);
  const Shape of_input{input, unit.gates * hidden}, of_hidden{hidden, unit.gates * hidden};
  check(w.ih.shape() == of_input, "{}: the input weight is {}; {} features and {} hidden need {}", op,
        w.ih.shape(), input, hidden, of_input);
  check(w.hh.shape() == of_hidden, "{}: the hidden weight is {}; {} hidden need {}", op, w.hh.shape(), hidden,
        of_hidden);
  check_fits(op, "input weight", w.ih, of_input, dtype);
  check_fits(op, "hidden weight", w.hh, of_hidden, dtype);
  check_fits(op, "input bias", w.bias_ih, {unit.gates * hidden}, dtype);
  check(unit.biases == 2 || !w.bias_hh.defined(), "{}: the unit has one bias; pass it as bias_ih alone", op);
  check_fits(op, "hidden bias", w.bias_hh, {unit.gates * hidden}, dtype);
  check(unit.has_inner() == w.inner.defined(), "{}: the inner weight is {}", op,
        unit.has_inner() ? "missing" : "not part of this unit");
  check_fits(op, "inner weight", w.inner, {hidden, hidden}, dtype);
  return hidden;
}

std::array<TensorRef, weights_per_unit> weight_inputs(const RecurrentWeights& w) {
  return {w.ih, w.hh, w.bias_ih, w.bias_hh, w.inner};
}

void weight_gradients(const Unit& unit, const GateGradients& g, const Tensor& h, int at, Grads& d) {
  const std::int64_t hidden = h.size(1);
  const auto columns = [&](std::int64_t gate) { return g.gates.narrow(1, gate * hidden, hidden); };
  if (auto dhh = d[at + 1]) matmul_into(dhh.slot(), h.t(), g.gates);
  if (auto dinner = d[at + 4]) matmul_into(dinner.slot(), g.candidate.t(), columns(unit.inner_gate));
  if (!g.q.defined() && d[at + 2] && d[at + 3]) {  // both sides have the same gradient
    const Tensor sums = empty({g.gates.size(1)}, g.gates.dtype());
    sum_rows_into({sums, 0}, g.gates);
    d[at + 2].give(sums);
    d[at + 3].give(sums);
    return;
  }
  if (auto db = d[at + 3]) sum_rows_into(db.slot(), g.gates);
  if (g.q.defined()) columns(unit.candidate).copy_(g.q);
  if (auto db = d[at + 2]) sum_rows_into(db.slot(), g.gates);
}

}  // namespace rill::nn::detail
