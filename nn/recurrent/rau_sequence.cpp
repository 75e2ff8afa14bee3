/// The RAU over a whole sequence as one op.
#include <memory>

#include <rill/nn/recurrent/rau.h>
#include <rill/nn/recurrent/rau_kernels.h>
#include <rill/nn/recurrent/sequence_op.h>

namespace rill::nn {
namespace {

using detail::KeptSide;

struct RauCell {
  static constexpr const char* name = "rau";
  static constexpr std::int64_t gates = 4;
  static constexpr std::int64_t products = 5;
  using Weights = RauWeights;

  static std::array<TensorRef, 2> rest(const RauWeights& w) { return {w.aa, w.bias}; }
  static void check_rest(const RauWeights& w, std::int64_t hidden, DType dtype) {
    check(w.aa.defined(), "rau: weight_aa is missing; it needs [{}, {}]", hidden, hidden);
    detail::check_weight(name, "weight_aa", w.aa, {hidden, hidden}, dtype);
    detail::check_weight(name, "bias", w.bias, {gates * hidden}, dtype);
  }
  static std::optional<Saved> inner(const RauWeights& w) { return Saved(detail::packable(w.aa), name); }

  template <class T>
  class Forward;
  template <class T>
  class Backward;

  /// Gradients of W_aa and the biases.
  static void rest_gradients(const KeptSide& k, int at, Grads& d) {
    const std::int64_t hidden = k.q.size(1);
    if (auto daa = d[at]) matmul_into(daa.slot(), k.candidate.t(), k.gates.narrow(1, 3 * hidden, hidden));
    if (auto dbias = d[at + 1]) detail::input_bias_gradient(k, dbias.slot());
  }
};

template <class T>
class RauCell::Forward {
 public:
  static constexpr std::int64_t gates = RauCell::gates;

  Forward(const RauWeights& w, const Tensor& hh, std::int64_t batch)
      : hidden_(hh.size(0)),
        product_(packed<T>(hh, batch)),
        inner_(packed<T>(detail::packable(w.aa), batch)),
        bias_(w.bias.defined() ? w.bias.detach().contiguous() : zeros({gates * hidden_}, dtype_of<T>)) {}

  template <class State>
  void operator()(std::int64_t m, const T* before, std::int64_t ld, T* g, T* q, T* space,
                  State&& state) const {
    const std::int64_t h = hidden_, width = gates * h;
    const T* bias = rill::detail::raw<const T>(bias_);
    product_->multiply({before, m, h, ld}, T(0), {space, m, width});
    for (std::int64_t i = 0; i < m; ++i)
      kernels::rau_gates(h, space + i * width, bias, g + i * width, q + i * h);
    inner_->multiply({g + 2 * h, m, h, width}, T(1), {g + 3 * h, m, h, width});
    for (std::int64_t i = 0; i < m; ++i) kernels::rau_state(h, before + i * ld, g + i * width, state(i));
  }

 private:
  std::int64_t hidden_;
  std::shared_ptr<const PackedMatrix<T>> product_, inner_;
  Tensor bias_;
};

template <class T>
class RauCell::Backward {
 public:
  static constexpr std::int64_t gates = RauCell::gates;

  Backward(const KeptSide& k, std::int64_t batch)
      : hidden_(k.q.size(1)),
        product_(packed<T>(k.hh().t(), batch)),
        inner_(packed<T>((*k.inner)().t(), batch)) {}

  template <class Gradient>
  void operator()(std::int64_t m, const T* before, std::int64_t ld, T* g, T* q, T* candidate,
                  Gradient&& dstate, T* dh, bool wants_before) const {
    const std::int64_t h = hidden_, width = gates * h;
    for (std::int64_t i = 0; i < m; ++i) {
      kernels::rau_state_backward(h, before + i * ld, dstate(i), g + i * width, candidate + i * h,
                                  dh + i * h);
    }
    inner_->multiply({g + 3 * h, m, h, width}, T(1), {candidate, m, h});
    for (std::int64_t i = 0; i < m; ++i)
      kernels::rau_gates_backward(h, candidate + i * h, g + i * width, q + i * h);
    if (wants_before) product_->multiply({g, m, width}, T(1), {dh, m, h});
  }

 private:
  std::int64_t hidden_;
  std::shared_ptr<const PackedMatrix<T>> product_, inner_;
};

}  // namespace

SequenceOutput rau_sequence(const Tensor& x, std::span<const RauWeights> directions,
                            const SequenceInputs& given) {
  return detail::sequence_op<RauCell>(x, directions, given);
}

}  // namespace rill::nn
