/// Declarative pointwise ops: a struct gives the name, the tensor that its gradient needs, and both formulas.
///
///   struct Tanh {
///     static constexpr const char* name = "tanh";
///     static constexpr Keeps keeps = Keeps::output;
///     RILL_INLINE auto forward(auto x) const { return kernels::math::tanh(x); }
///     RILL_INLINE auto backward(auto dy, auto y) const { return dy * (1 - y * y); }
///   };
///   Tensor tanh(const Tensor& x) { return unary(Tanh{}, x); }
///
/// `unary` and `binary` generate the loops (vectorized, threaded when large), the broadcasting and its
/// backward sum.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include <rill/core/autograd.h>
#include <rill/core/kernels/map.h>
#include <rill/core/kernels/math.h>
#include <rill/core/ops.h>

#pragma GCC visibility push(default)

namespace rill {

/// The operand that the backward formula reads besides dy.
enum class Keeps : std::uint8_t { nothing, input, output };

namespace detail {

/// to = beta · to + f(from…) elementwise, with the inputs (of any layout, at most three) broadcast to the
/// shape of `to`; beta is 0 or 1. `f` points to the functor of `loop`; a null loop copies. With beta 0, `to`
/// may be one of the inputs.
void pointwise(kernels::DenseLoop loop, const void* f, std::initializer_list<const Tensor*> from,
               const Tensor& to, double beta = 0);

/// Adds the gradient f(from…), of the given shape, to d, summed over the dimensions that were broadcast.
void give_pointwise(kernels::DenseLoop loop, const void* f, std::initializer_list<const Tensor*> from,
                    const Shape& shape, GradRef d);

// The formulas of an op as functors.
template <class Op>
struct ForwardOf {
  Op op;
  RILL_INLINE auto operator()(auto... x) const { return op.forward(x...); }
};
template <class Op>
struct BackwardOf {
  Op op;
  RILL_INLINE auto operator()(auto dy, auto kept) const { return op.backward(dy, kept); }
};
template <class Op>
struct BackwardOfA {
  Op op;
  RILL_INLINE auto operator()(auto dy, auto a, auto b) const { return op.backward_a(dy, a, b); }
};
template <class Op>
struct BackwardOfB {
  Op op;
  RILL_INLINE auto operator()(auto dy, auto a, auto b) const { return op.backward_b(dy, a, b); }
};

/// The loop of F with `inputs` inputs of the given floating dtype; throws "op: …" for any other dtype.
template <class F, int inputs>
kernels::DenseLoop floating_loop(const char* op, DType dtype) {
  return visit_floating(op, dtype, []<class T>(Type<T>) -> kernels::DenseLoop {
    if constexpr (inputs == 1) return kernels::map1<F, T, T>;
    if constexpr (inputs == 2) return kernels::map2<F, T, T, T>;
    if constexpr (inputs == 3) return kernels::map3<F, T, T, T, T>;
  });
}

template <class Op>
void unary_backward(const Op& op, const Tensor& dy, const Tensor& kept, Grads& d) {
  const BackwardOf<Op> f{op};
  const Slot slot = d[0].in_place_slot(dy);
  pointwise(floating_loop<BackwardOf<Op>, 2>(op.name, dy.dtype()), &f, {&dy, &kept}, slot.to, slot.beta);
}

template <class Op>
Tensor binary_forward(const Op& op, const Tensor& a, const Tensor& b) {
  const ForwardOf<Op> f{op};
  const auto loop = floating_loop<ForwardOf<Op>, 2>(op.name, a.dtype());
  Tensor y =
      empty(a.shape() == b.shape() ? a.shape() : broadcast_shapes(op.name, a.shape(), b.shape()), a.dtype());
  pointwise(loop, &f, {&a, &b}, y);
  return y;
}

template <class Op>
void binary_backward(const Op& op, const Tensor& dy, const Tensor& a, const Tensor& b, Grads& d) {
  if (auto da = d[0]) {
    if constexpr (requires(float x) { op.backward_a(x, x, x); }) {
      const BackwardOfA<Op> f{op};
      give_pointwise(floating_loop<BackwardOfA<Op>, 3>(op.name, dy.dtype()), &f, {&dy, &a, &b}, dy.shape(),
                     da);
    } else {
      da.give(sum_to(dy, da.shape()));
    }
  }
  if (auto db = d[1]) {
    if constexpr (requires(float x) { op.backward_b(x, x, x); }) {
      const BackwardOfB<Op> f{op};
      give_pointwise(floating_loop<BackwardOfB<Op>, 3>(op.name, dy.dtype()), &f, {&dy, &a, &b}, dy.shape(),
                     db);
    } else {
      db.give(sum_to(dy, db.shape()));
    }
  }
}

}  // namespace detail

/// Applies a unary pointwise op (see the top of this file).
template <class Op>
Tensor unary(const Op& op, const Tensor& x) {
  const detail::ForwardOf<Op> f{op};
  const auto loop = detail::floating_loop<detail::ForwardOf<Op>, 1>(op.name, x.dtype());
  Tensor y = empty(x.shape(), x.dtype());
  detail::pointwise(loop, &f, {&x}, y);
  if (!is_recording({x})) return unrecorded(op.name, std::move(y));
  if constexpr (Op::keeps == Keeps::nothing) {
    return record(op.name, std::move(y), {x},
                  [op](const Tensor& dy, Grads& d) { detail::unary_backward(op, dy, dy, d); });
  } else {
    const Tensor& kept = Op::keeps == Keeps::input ? x : y;
    return record(op.name, std::move(y), {x}, [op, kept = Saved(kept, op.name)](const Tensor& dy, Grads& d) {
      detail::unary_backward(op, dy, kept(), d);
    });
  }
}

/// Applies a binary pointwise op: a struct with `name`, `keeps` (nothing or input), `forward(a, b)`,
/// `backward_a(dy, a, b)` and `backward_b(dy, a, b)`. Without the latter two, the gradient is dy itself. An
/// op that keeps nothing gets dy for a and b.
template <class Op>
Tensor binary(const Op& op, const Tensor& a, const Tensor& b) {
  check_same_dtype(op.name, a.dtype(), b.dtype());
  Tensor y = detail::binary_forward(op, a, b);
  if (!is_recording({a, b})) return unrecorded(op.name, std::move(y));
  if constexpr (Op::keeps == Keeps::nothing) {
    return record(op.name, std::move(y), {a, b},
                  [op](const Tensor& dy, Grads& d) { detail::binary_backward(op, dy, dy, dy, d); });
  } else {
    return record(op.name, std::move(y), {a, b},
                  [op, a = Saved(a, op.name), b = Saved(b, op.name)](const Tensor& dy, Grads& d) {
                    detail::binary_backward(op, dy, a(), b(), d);
                  });
  }
}

}  // namespace rill

#pragma GCC visibility pop
