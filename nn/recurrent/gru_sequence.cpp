/// The GRU over a whole sequence as one op.
#include <memory>

#include <rill/nn/recurrent/gru.h>
#include <rill/nn/recurrent/gru_kernels.h>
#include <rill/nn/recurrent/sequence_op.h>

namespace rill::nn {
namespace {

using detail::KeptSide;

struct GruCell {
  static constexpr const char* name = "gru";
  static constexpr std::int64_t gates = 3;
  static constexpr std::int64_t products = 3;
  using Weights = GruWeights;

  static std::array<TensorRef, 2> rest(const GruWeights& w) { return {w.bias_ih, w.bias_hh}; }
  static void check_rest(const GruWeights& w, std::int64_t hidden, DType dtype) {
    detail::check_weight(name, "input bias", w.bias_ih, {gates * hidden}, dtype);
    detail::check_weight(name, "hidden bias", w.bias_hh, {gates * hidden}, dtype);
  }
  static std::optional<Saved> inner(const GruWeights&) { return std::nullopt; }

  template <class T>
  class Forward;
  template <class T>
  class Backward;

  /// Gradients of the biases: those of the hidden side are the sums of what the hidden products have.
  static void rest_gradients(const KeptSide& k, int at, Grads& d) {
    if (auto db = d[at]) detail::input_bias_gradient(k, db.slot());
    if (auto db = d[at + 1]) sum_rows_into(db.slot(), k.gates);
  }
};

/// The biases as the kernel wants them, [4H]: r and z summed, n's input side, n's hidden side.
Tensor joined_bias(const GruWeights& w, std::int64_t hidden, DType dtype) {
  Tensor joined = zeros({4 * hidden}, dtype);
  if (w.bias_ih.defined()) joined.narrow(0, 0, 3 * hidden).copy_(w.bias_ih.detach());
  if (!w.bias_hh.defined()) return joined;
  const Tensor bias = w.bias_hh.detach();
  joined.narrow(0, 0, 2 * hidden).add_(bias.narrow(0, 0, 2 * hidden));
  joined.narrow(0, 3 * hidden, hidden).copy_(bias.narrow(0, 2 * hidden, hidden));
  return joined;
}

template <class T>
class GruCell::Forward {
 public:
  static constexpr std::int64_t gates = GruCell::gates;

  Forward(const GruWeights& w, const Tensor& hh, std::int64_t batch)
      : hidden_(hh.size(0)), product_(packed<T>(hh, batch)), bias_(joined_bias(w, hidden_, dtype_of<T>)) {}

  template <class State>
  void operator()(std::int64_t m, const T* before, std::int64_t ld, T* g, T* q, T* space,
                  State&& state) const {
    const std::int64_t h = hidden_, width = gates * h;
    const T* bias = rill::detail::raw<const T>(bias_);
    product_->multiply({before, m, h, ld}, T(0), {space, m, width});
    for (std::int64_t i = 0; i < m; ++i) {
      kernels::gru_gates(h, space + i * width, bias, before + i * ld, g + i * width, q + i * h, state(i));
    }
  }

 private:
  std::int64_t hidden_;
  std::shared_ptr<const PackedMatrix<T>> product_;
  Tensor bias_;
};

template <class T>
class GruCell::Backward {
 public:
  static constexpr std::int64_t gates = GruCell::gates;

  Backward(const KeptSide& k, std::int64_t batch)
      : hidden_(k.q.size(1)), product_(packed<T>(k.hh().t(), batch)) {}

  template <class Gradient>
  void operator()(std::int64_t m, const T* before, std::int64_t ld, T* g, T* q, T*, Gradient&& dstate, T* dh,
                  bool wants_before) const {
    const std::int64_t h = hidden_, width = gates * h;
    for (std::int64_t i = 0; i < m; ++i) {
      kernels::gru_gates_backward(h, before + i * ld, dstate(i), g + i * width, q + i * h, dh + i * h);
    }
    if (wants_before) product_->multiply({g, m, width}, T(1), {dh, m, h});
  }

 private:
  std::int64_t hidden_;
  std::shared_ptr<const PackedMatrix<T>> product_;
};

}  // namespace

SequenceOutput gru_sequence(const Tensor& x, std::span<const GruWeights> directions,
                            const SequenceInputs& given) {
  return detail::sequence_op<GruCell>(x, directions, given);
}

}  // namespace rill::nn
